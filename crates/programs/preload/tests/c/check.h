/* What the test programs share: a check that says where it failed. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(got, want)                                                       \
    do {                                                                       \
        long got_ = (long)(got), want_ = (long)(want);                         \
        if (got_ != want_) {                                                   \
            fprintf(stderr, "%s:%d: %s is %ld, not %ld (%s)\n", __FILE__,      \
                    __LINE__, #got, got_, want_, strerror((int)got_));         \
            _exit(1);                                                          \
        }                                                                      \
    } while (0)

static inline struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += ms % 1000 * 1000000;
    t.tv_sec += ms / 1000;
    while (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    while (t.tv_nsec < 0) {
        t.tv_nsec += 1000000000;
        t.tv_sec--;
    }
    return t;
}

/* Runs f(argument) on another thread and returns what it returned. */
static inline void *elsewhere(void *(*f)(void *), void *argument)
{
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, f, argument), 0);
    CHECK(pthread_join(thread, &result), 0);
    return result;
}
