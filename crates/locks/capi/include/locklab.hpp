/* The locks for C++11 and later, for use with std::lock_guard, std::unique_lock
 * and std::shared_lock. SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * locklab::ticket_mutex and locklab::qspinlock_mutex are Lockable and four
 * bytes. locklab::mcs_mutex needs one node per waiter, which its own guard
 * contains. locklab::any_mutex is a lock by name. */
#ifndef LOCKLAB_HPP
#define LOCKLAB_HPP

#include "locklab.h"

#include <chrono>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

namespace locklab {

/* First come, first served; every waiter spins on the one word. */
class ticket_mutex {
public:
	constexpr ticket_mutex() noexcept = default;
	ticket_mutex(const ticket_mutex &) = delete;
	ticket_mutex &operator=(const ticket_mutex &) = delete;

	void lock() noexcept { locklab_ticket_lock(&lock_); }
	bool try_lock() noexcept { return locklab_ticket_trylock(&lock_); }
	void unlock() noexcept { locklab_ticket_unlock(&lock_); }
	locklab_ticket_t *native_handle() noexcept { return &lock_; }

private:
	locklab_ticket_t lock_ = LOCKLAB_TICKET_INIT;
};

/* First come, first served; each queued waiter spins on a line of its own. */
class qspinlock_mutex {
public:
	constexpr qspinlock_mutex() noexcept = default;
	qspinlock_mutex(const qspinlock_mutex &) = delete;
	qspinlock_mutex &operator=(const qspinlock_mutex &) = delete;

	void lock() noexcept { locklab_qspinlock_lock(&lock_); }
	bool try_lock() noexcept { return locklab_qspinlock_trylock(&lock_); }
	void unlock() noexcept { locklab_qspinlock_unlock(&lock_); }
	locklab_qspinlock_t *native_handle() noexcept { return &lock_; }

private:
	locklab_qspinlock_t lock_ = LOCKLAB_QSPINLOCK_INIT;
};

/* One pointer; a waiter's node is in its guard. */
class mcs_mutex {
public:
	constexpr mcs_mutex() noexcept = default;
	mcs_mutex(const mcs_mutex &) = delete;
	mcs_mutex &operator=(const mcs_mutex &) = delete;

	/* Holds the lock for as long as it lives; other threads know its
	 * address, so it cannot be moved. */
	class guard {
	public:
		explicit guard(mcs_mutex &mutex) noexcept : mutex_(mutex)
		{
			locklab_mcs_lock(&mutex_.lock_, &node_);
		}
		~guard() { locklab_mcs_unlock(&mutex_.lock_, &node_); }
		guard(const guard &) = delete;
		guard &operator=(const guard &) = delete;

	private:
		mcs_mutex &mutex_;
		locklab_mcs_node_t node_ = LOCKLAB_MCS_NODE_INIT;
	};

	locklab_mcs_t *native_handle() noexcept { return &lock_; }

private:
	locklab_mcs_t lock_ = LOCKLAB_MCS_INIT;
};

/* A lock by the name that 'locklab locks' lists, if it needs no context:
 * Lockable; TimedLockable and SharedLockable if the lock is (otherwise those
 * functions throw std::logic_error). */
class any_mutex {
public:
	explicit any_mutex(const char *name) : type_(locklab_find(name))
	{
		if (!type_)
			throw std::invalid_argument(
				std::string("no lock is called ") + name);
		if (type_->context_size)
			throw std::invalid_argument(
				std::string(name) +
				" needs a context for each waiter");
		/* C++11 has no aligned new. */
		space_ = ::operator new(type_->size + type_->align);
		std::size_t address = reinterpret_cast<std::size_t>(space_);
		lock_ = reinterpret_cast<void *>((address + type_->align - 1) &
						 ~(type_->align - 1));
		type_->init(lock_);
	}
	~any_mutex() { ::operator delete(space_); }
	any_mutex(const any_mutex &) = delete;
	any_mutex &operator=(const any_mutex &) = delete;

	void lock() noexcept { type_->lock(lock_, nullptr); }
	bool try_lock() noexcept { return type_->try_lock(lock_, nullptr); }
	void unlock() noexcept { type_->unlock(lock_, nullptr); }

	template <class Rep, class Period>
	bool try_lock_for(const std::chrono::duration<Rep, Period> &time)
	{
		using namespace std::chrono;
		const auto left = duration_cast<nanoseconds>(time).count();
		return lock_until(left > 0 ? locklab_now() + left : 0);
	}

	template <class Clock, class Duration>
	bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time)
	{
		return try_lock_for(time - Clock::now());
	}

	void lock_shared() { shared(type_->read_lock)(lock_); }
	bool try_lock_shared() { return shared(type_->try_read_lock)(lock_); }
	void unlock_shared() { shared(type_->read_unlock)(lock_); }

	const locklab_type_t &type() const noexcept { return *type_; }

private:
	bool lock_until(std::uint64_t deadline)
	{
		if (!type_->lock_until)
			throw std::logic_error(std::string(type_->name) +
					       " cannot be given up");
		return type_->lock_until(lock_, nullptr, deadline);
	}

	template <class Function> Function shared(Function function) const
	{
		if (!function)
			throw std::logic_error(std::string(type_->name) +
					       " is exclusive only");
		return function;
	}

	const locklab_type_t *type_;
	void *space_;
	void *lock_;
};

} /* namespace locklab */

#endif /* LOCKLAB_HPP */
