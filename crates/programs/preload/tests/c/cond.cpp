// Condition variables under C++: a bounded queue between threads, timed
// waits, both clocks, recursive mutexes, exceptions, cancellation.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <pthread.h>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,            \
                         #condition);                                          \
            std::abort();                                                      \
        }                                                                      \
    } while (0)

struct Queue {
    std::mutex mutex;
    std::condition_variable some, room;
    std::deque<int> items;

    void put(int item)
    {
        std::unique_lock lock(mutex);
        room.wait(lock, [&] { return items.size() < 4; });
        items.push_back(item);
        some.notify_one();
    }

    int get()
    {
        std::unique_lock lock(mutex);
        some.wait(lock, [&] { return !items.empty(); });
        int item = items.front();
        items.pop_front();
        room.notify_one();
        return item;
    }
};

static void queue()
{
    constexpr int threads = 3, each = 3000;
    Queue queue;
    std::atomic<long> sum = 0;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++) {
        all.emplace_back([&] {
            for (int i = 1; i <= each; i++)
                queue.put(i);
        });
        all.emplace_back([&] {
            for (int i = 0; i < each; i++)
                sum += queue.get();
        });
    }
    for (auto &thread : all)
        thread.join();
    CHECK(sum == long(threads) * each * (each + 1) / 2);
}

static void times()
{
    using namespace std::chrono;
    std::mutex mutex;
    std::condition_variable condition;
    std::condition_variable_any any;
    std::unique_lock lock(mutex);
    auto begin = steady_clock::now();
    CHECK(condition.wait_for(lock, 20ms) == std::cv_status::timeout);
    CHECK(steady_clock::now() - begin >= 20ms);
    CHECK(condition.wait_until(lock, system_clock::now() + 20ms) == std::cv_status::timeout);
    CHECK(condition.wait_until(lock, system_clock::now() - 20ms) == std::cv_status::timeout);
    CHECK(any.wait_for(lock, 20ms) == std::cv_status::timeout);
    lock.unlock();

    std::timed_mutex timed;
    timed.lock();
    std::thread([&] { CHECK(!timed.try_lock_for(20ms)); }).join();
    timed.unlock();
    std::recursive_mutex recursive;
    std::scoped_lock both(mutex, recursive);
    std::lock_guard again(recursive);
    try {
        std::lock_guard third(recursive);
        throw std::runtime_error("unwinds");
    } catch (const std::runtime_error &) {
    }
    std::thread([&] { CHECK(!recursive.try_lock()); }).join();
    std::shared_mutex shared;
    std::shared_lock reader(shared);
    std::once_flag once;
    std::call_once(once, [] {});
}

static void broadcast()
{
    std::mutex mutex;
    std::condition_variable condition;
    int round = 0, woken = 0;
    std::vector<std::thread> all;
    for (int t = 0; t < 8; t++)
        all.emplace_back([&] {
            for (int r = 1; r <= 50; r++) {
                std::unique_lock lock(mutex);
                condition.wait(lock, [&] { return round >= r; });
                woken++;
                condition.notify_all();
            }
        });
    for (int r = 1; r <= 50; r++) {
        std::unique_lock lock(mutex);
        round = r;
        condition.notify_all();
        condition.wait(lock, [&] { return woken == 8 * r; });
    }
    for (auto &thread : all)
        thread.join();
}

// A cancelled waiter takes the mutex back before its handlers run.
static pthread_mutex_t cancel_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cancel_condition = PTHREAD_COND_INITIALIZER;

static void cancelled()
{
    pthread_t thread;
    static int handled;
    CHECK(pthread_create(&thread, nullptr, [](void *) -> void * {
        pthread_mutex_lock(&cancel_mutex);
        pthread_cleanup_push([](void *) {
            CHECK(pthread_mutex_trylock(&cancel_mutex) == EBUSY);
            handled++;
            pthread_mutex_unlock(&cancel_mutex);
        }, nullptr);
        for (;;)
            pthread_cond_wait(&cancel_condition, &cancel_mutex);
        pthread_cleanup_pop(0);
        return nullptr;
    }, nullptr) == 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    void *result;
    CHECK(pthread_cancel(thread) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
    CHECK(handled == 1);
    CHECK(pthread_mutex_trylock(&cancel_mutex) == 0);
    pthread_mutex_unlock(&cancel_mutex);
}

// Mutexes that come and go at the same addresses, never destroyed.
static void come_and_go()
{
    for (int i = 0; i < 100000; i++) {
        std::mutex mutex;
        std::lock_guard lock(mutex);
    }
}

// A mutex and a condition variable shared between processes, and a private
// mutex with such a condition variable.
static void shared()
{
    pthread_mutexattr_t m;
    pthread_condattr_t c;
    pthread_mutex_t mutex, plain = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition;
    pthread_mutexattr_init(&m);
    pthread_mutexattr_setpshared(&m, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&m, PTHREAD_MUTEX_ROBUST);
    pthread_condattr_init(&c);
    pthread_condattr_setpshared(&c, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setclock(&c, CLOCK_MONOTONIC);
    CHECK(pthread_mutex_init(&mutex, &m) == 0);
    CHECK(pthread_cond_init(&condition, &c) == 0);
    for (pthread_mutex_t *which : {&mutex, &plain}) {
        bool ready = false;
        std::thread other([&] {
            pthread_mutex_lock(which);
            ready = true;
            pthread_cond_signal(&condition);
            pthread_mutex_unlock(which);
        });
        pthread_mutex_lock(which);
        while (!ready)
            CHECK(pthread_cond_wait(&condition, which) == 0);
        timespec past = {1, 0};
        CHECK(pthread_cond_timedwait(&condition, which, &past) == ETIMEDOUT);
        pthread_mutex_unlock(which);
        other.join();
    }
    // A robust mutex with a condition variable of ours.
    pthread_cond_t ours = PTHREAD_COND_INITIALIZER;
    timespec past = {1, 0}, never = {1, 1000000000};
    pthread_mutex_lock(&mutex);
    CHECK(pthread_cond_timedwait(&ours, &mutex, &past) == ETIMEDOUT);
    CHECK(pthread_cond_timedwait(&ours, &mutex, &never) == EINVAL);
    CHECK(pthread_mutex_trylock(&mutex) == EBUSY);
    pthread_mutex_unlock(&mutex);
    CHECK(pthread_cond_destroy(&ours) == 0);
    CHECK(pthread_cond_destroy(&condition) == 0);
    CHECK(pthread_mutex_destroy(&mutex) == 0);
}

int main()
{
    queue();
    times();
    broadcast();
    cancelled();
    come_and_go();
    shared();
    std::puts("waited");
}
