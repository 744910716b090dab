/* The C++ wrapper under the standard library's guards. C++14, for
 * std::shared_lock. */
#include "locklab.hpp"
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

static int failed;

#define CHECK(what)                                          \
	do {                                                 \
		if (!(what)) {                               \
			std::printf("not so: %s\n", #what);  \
			failed = 1;                          \
		}                                            \
	} while (0)

template <class Body> static void contend(Body body)
{
	std::vector<std::thread> threads;

	for (int n = 0; n < 3; n++)
		threads.emplace_back([&] {
			for (int turn = 0; turn < 400; turn++)
				body();
		});
	for (auto &thread : threads)
		thread.join();
}

static locklab::ticket_mutex global; /* initialised before anything runs */

int main()
{
	static_assert(sizeof(locklab::ticket_mutex) == 4, "one word");
	static_assert(sizeof(locklab::qspinlock_mutex) == 4, "one word");
	long count = 0;
	locklab::qspinlock_mutex queued;
	locklab::mcs_mutex mcs;
	locklab::any_mutex word("ttas"), shared("rw-queued");

	contend([&] { std::lock_guard<locklab::ticket_mutex> hold(global); count++; });
	contend([&] { std::lock_guard<locklab::qspinlock_mutex> hold(queued); count++; });
	contend([&] { locklab::mcs_mutex::guard hold(mcs); count++; });
	contend([&] { std::unique_lock<locklab::any_mutex> hold(word); count++; });
	contend([&] { std::lock_guard<locklab::any_mutex> hold(shared); count++; });
	CHECK(count == 5 * 3 * 400);

	std::unique_lock<locklab::any_mutex> held(word);
	std::thread([&] {
		std::unique_lock<locklab::any_mutex> late(word, std::defer_lock);
		CHECK(!late.try_lock());
		CHECK(!late.try_lock_for(std::chrono::milliseconds(1)));
		CHECK(!late.try_lock_until(std::chrono::steady_clock::now()));
	}).join();
	held.unlock();
	CHECK(held.try_lock_for(std::chrono::milliseconds(1)));

	{
		std::shared_lock<locklab::any_mutex> one(shared), two(shared);
		CHECK(!shared.try_lock());
	}
	CHECK(shared.try_lock());
	shared.unlock();
	try {
		locklab::any_mutex needs_a_node("mcs");
		CHECK(!"a lock that needs a node");
	} catch (const std::invalid_argument &) {
	}
	try {
		locklab::any_mutex("ticket").lock_shared();
		CHECK(!"a ticket lock is exclusive");
	} catch (const std::logic_error &) {
	}
	return failed;
}
