/* What POSIX and glibc say of mutexes, and programs rely on. */
#include "check.h"
#include <semaphore.h>

static void *try_lock(void *mutex)
{
    int result = pthread_mutex_trylock(mutex);
    if (result == 0)
        CHECK(pthread_mutex_unlock(mutex), 0);
    return (void *)(long)result;
}

static void *unlock(void *mutex)
{
    return (void *)(long)pthread_mutex_unlock(mutex);
}

static void *timed_lock(void *mutex)
{
    struct timespec soon = in_ms(CLOCK_REALTIME, 20);
    return (void *)(long)pthread_mutex_timedlock(mutex, &soon);
}

static void *clock_lock(void *mutex)
{
    struct timespec soon = in_ms(CLOCK_MONOTONIC, 20);
    return (void *)(long)pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &soon);
}

/* Threads that are about to wait: on a busy machine no sleep is long enough
 * for another thread to come so far. */
static sem_t waits;

static void *late_lock(void *mutex)
{
    struct timespec never = {0, -1};
    CHECK(pthread_mutex_timedlock(mutex, &never), EINVAL);
    never.tv_nsec = 1000000000;
    CHECK(pthread_mutex_timedlock(mutex, &never), EINVAL);
    struct timespec past = in_ms(CLOCK_REALTIME, -1000);
    CHECK(pthread_mutex_timedlock(mutex, &past), ETIMEDOUT);
    struct timespec now = in_ms(CLOCK_MONOTONIC, 20);
    CHECK(pthread_mutex_clocklock(mutex, CLOCK_PROCESS_CPUTIME_ID, &now), EINVAL);
    /* Released within the time. */
    struct timespec later = in_ms(CLOCK_REALTIME, 100000);
    CHECK(sem_post(&waits), 0);
    CHECK(pthread_mutex_timedlock(mutex, &later), 0);
    CHECK(pthread_mutex_unlock(mutex), 0);
    return NULL;
}

static void normal(pthread_mutex_t *mutex)
{
    CHECK(pthread_mutex_lock(mutex), 0);
    CHECK(pthread_mutex_trylock(mutex), EBUSY);
    CHECK(elsewhere(try_lock, mutex), EBUSY);
    CHECK(elsewhere(timed_lock, mutex), ETIMEDOUT);
    CHECK(elsewhere(clock_lock, mutex), ETIMEDOUT);
    pthread_t late;
    CHECK(pthread_create(&late, NULL, late_lock, mutex), 0);
    CHECK(sem_wait(&waits), 0);
    usleep(20000);
    CHECK(pthread_mutex_destroy(mutex), EBUSY);
    CHECK(pthread_mutex_unlock(mutex), 0);
    CHECK(pthread_join(late, NULL), 0);
    CHECK(elsewhere(try_lock, mutex), 0);
    /* A free lock need not wait, whatever the time. */
    struct timespec past = in_ms(CLOCK_REALTIME, -1000);
    CHECK(pthread_mutex_timedlock(mutex, &past), 0);
    CHECK(pthread_mutex_unlock(mutex), 0);
}

static void recursive(pthread_mutex_t *mutex)
{
    for (int i = 0; i < 10; i++)
        CHECK(pthread_mutex_lock(mutex), 0);
    CHECK(pthread_mutex_trylock(mutex), 0);
    struct timespec soon = in_ms(CLOCK_REALTIME, 1000);
    CHECK(pthread_mutex_timedlock(mutex, &soon), 0);
    CHECK(elsewhere(try_lock, mutex), EBUSY);
    CHECK(elsewhere(unlock, mutex), EPERM);
    for (int i = 0; i < 12; i++) {
        CHECK(elsewhere(try_lock, mutex), EBUSY);
        CHECK(pthread_mutex_unlock(mutex), 0);
    }
    CHECK(elsewhere(try_lock, mutex), 0);
    CHECK(pthread_mutex_unlock(mutex), EPERM);
}

static void error_checking(pthread_mutex_t *mutex)
{
    CHECK(pthread_mutex_unlock(mutex), EPERM);
    CHECK(pthread_mutex_lock(mutex), 0);
    CHECK(pthread_mutex_lock(mutex), EDEADLK);
    CHECK(pthread_mutex_trylock(mutex), EBUSY);
    struct timespec soon = in_ms(CLOCK_REALTIME, 1000);
    CHECK(pthread_mutex_timedlock(mutex, &soon), EDEADLK);
    CHECK(elsewhere(unlock, mutex), EPERM);
    CHECK(elsewhere(try_lock, mutex), EBUSY);
    CHECK(pthread_mutex_unlock(mutex), 0);
    CHECK(pthread_mutex_unlock(mutex), EPERM);
    CHECK(elsewhere(try_lock, mutex), 0);
}

static void with_type(int type, void (*test)(pthread_mutex_t *))
{
    pthread_mutexattr_t attributes;
    pthread_mutex_t *mutex = malloc(sizeof *mutex);
    memset(mutex, 0xa5, sizeof *mutex);
    CHECK(pthread_mutexattr_init(&attributes), 0);
    CHECK(pthread_mutexattr_settype(&attributes, type), 0);
    CHECK(pthread_mutex_init(mutex, &attributes), 0);
    test(mutex);
    CHECK(pthread_mutex_destroy(mutex), 0);
    CHECK(pthread_mutex_lock(mutex), EINVAL);
    /* Again on the same memory, without attributes. */
    CHECK(pthread_mutex_init(mutex, NULL), 0);
    normal(mutex);
    CHECK(pthread_mutex_destroy(mutex), 0);
    free(mutex);
}

static void *die_holding(void *mutex)
{
    CHECK(pthread_mutex_lock(mutex), 0);
    return NULL;
}

/* Robust, shared, of a priority protocol: glibc's own. */
static void kept_by_glibc(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    CHECK(pthread_mutexattr_init(&attributes), 0);
    CHECK(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST), 0);
    CHECK(pthread_mutex_init(&mutex, &attributes), 0);
    elsewhere(die_holding, &mutex);
    CHECK(pthread_mutex_lock(&mutex), EOWNERDEAD);
    CHECK(pthread_mutex_consistent(&mutex), 0);
    CHECK(pthread_mutex_unlock(&mutex), 0);
    CHECK(pthread_mutex_destroy(&mutex), 0);

    CHECK(pthread_mutexattr_init(&attributes), 0);
    CHECK(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
    CHECK(pthread_mutex_init(&mutex, &attributes), 0);
    normal(&mutex);
    CHECK(pthread_mutex_destroy(&mutex), 0);

    CHECK(pthread_mutexattr_init(&attributes), 0);
    CHECK(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT), 0);
    CHECK(pthread_mutex_init(&mutex, &attributes), 0);
    CHECK(pthread_mutex_lock(&mutex), 0);
    CHECK(elsewhere(try_lock, &mutex), EBUSY);
    CHECK(pthread_mutex_unlock(&mutex), 0);
    CHECK(pthread_mutex_destroy(&mutex), 0);
}

/* Many locks held at once, released in any order, some by others. */
static void nesting(void)
{
    enum { N = 100 };
    static pthread_mutex_t mutex[N];
    for (int i = 0; i < N; i++)
        CHECK(pthread_mutex_lock(&mutex[i]), 0);
    for (int i = 0; i < N; i += 2)
        CHECK(pthread_mutex_unlock(&mutex[i]), 0);
    for (int i = 0; i < N; i += 2)
        CHECK(pthread_mutex_lock(&mutex[i]), 0);
    for (int i = 0; i < N; i++)
        CHECK(pthread_mutex_trylock(&mutex[i]), EBUSY);
    for (int i = 0; i < N; i++)
        CHECK(pthread_mutex_unlock(&mutex[i]), 0);
}

static void by_others(void)
{
    static pthread_mutex_t mutex;
    /* Undefined in POSIX; glibc bears it, and so some programs do it. */
    for (int i = 0; i < 100; i++) {
        elsewhere(die_holding, &mutex);
        CHECK(pthread_mutex_trylock(&mutex), EBUSY);
        CHECK(pthread_mutex_unlock(&mutex), 0);
    }
}

/* An address used anew without destroy, as std::mutex does. */
static void reuse(void)
{
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        CHECK(pthread_mutex_lock(&mutex), 0);
        if (i % 2)
            CHECK(pthread_mutex_unlock(&mutex), 0);
        CHECK(pthread_mutex_init(&mutex, NULL), 0);
        CHECK(pthread_mutex_lock(&mutex), 0);
        CHECK(pthread_mutex_unlock(&mutex), 0);
    }
}

static void spin(void)
{
    pthread_spinlock_t spin[100];
    memset((void *)spin, 0xff, sizeof spin);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 100; i++)
            CHECK(pthread_spin_init(&spin[i], i % 10 == 0), 0);
        for (int i = 0; i < 100; i++) {
            CHECK(pthread_spin_lock(&spin[i]), 0);
            CHECK(pthread_spin_trylock(&spin[i]), EBUSY);
            CHECK(pthread_spin_unlock(&spin[i]), 0);
            CHECK(pthread_spin_trylock(&spin[i]), 0);
            CHECK(pthread_spin_unlock(&spin[i]), 0);
        }
        for (int i = 0; i < 100; i++)
            CHECK(pthread_spin_destroy(&spin[i]), 0);
    }
}

int main(int argc, char **argv)
{
    static pthread_mutex_t n = PTHREAD_MUTEX_INITIALIZER,
                           a = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
                           r = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                           e = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    CHECK(sem_init(&waits, 0, 0), 0);
    errno = 77;
    normal(&n);
    normal(&a);
    recursive(&r);
    error_checking(&e);
    with_type(PTHREAD_MUTEX_DEFAULT, normal);
    with_type(PTHREAD_MUTEX_NORMAL, normal);
    with_type(PTHREAD_MUTEX_ADAPTIVE_NP, normal);
    with_type(PTHREAD_MUTEX_RECURSIVE, recursive);
    with_type(PTHREAD_MUTEX_ERRORCHECK, error_checking);
    kept_by_glibc();
    nesting();
    if (argc < 2 || strcmp(argv[1], "no-others") != 0)
        by_others();
    reuse();
    spin();
    CHECK(errno, 77);
    puts("conforms");
    return 0;
}
