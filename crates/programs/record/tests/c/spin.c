/* Two threads take a lock of the program's own 500 times each. */
#include "locklab_record.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

struct spin { atomic_int held; };

struct spin the_lock;
static long sum;

static int attempt(struct spin *lock) {
    return atomic_exchange_explicit(&lock->held, 1, memory_order_acquire) == 0;
}

static void take(struct spin *lock) {
    if (attempt(lock)) {
        LOCKLAB_TOOK(lock);
        return;
    }
    LOCKLAB_ACQUIRE(lock);
    while (!attempt(lock)) sched_yield();
    LOCKLAB_ACQUIRED(lock);
}

static void give(struct spin *lock) {
    LOCKLAB_RELEASE(lock);
    atomic_store_explicit(&lock->held, 0, memory_order_release);
    LOCKLAB_RELEASED(lock);
}

static void *run(void *unused) {
    (void)unused;
    for (int i = 0; i < 500; i++) {
        take(&the_lock);
        sum++;
        give(&the_lock);
    }
    return 0;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, run, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return sum == 1000 ? 0 : 1;
}
