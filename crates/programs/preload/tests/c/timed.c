/* timed [in-order]: timed locks that give up, and that do not. With in-order,
 * one that waits with a time keeps its place before one that came later. */
#include "check.h"
#include <semaphore.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char order[3];
static int came;
/* Counts threads that are about to wait. */
static sem_t waits;

static void *give_up(void *unused)
{
    for (int i = 0; i < 200; i++) {
        struct timespec soon = in_ms(CLOCK_MONOTONIC, 0);
        soon.tv_nsec += soon.tv_nsec < 999000000 ? 200000 : 0;
        CHECK(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
    }
    return unused;
}

static void *timed(void *unused)
{
    struct timespec late = in_ms(CLOCK_REALTIME, 100000);
    CHECK(sem_post(&waits), 0);
    CHECK(pthread_mutex_timedlock(&mutex, &late), 0);
    order[came++] = 't';
    CHECK(pthread_mutex_unlock(&mutex), 0);
    return unused;
}

static void *untimed(void *unused)
{
    CHECK(sem_post(&waits), 0);
    CHECK(pthread_mutex_lock(&mutex), 0);
    order[came++] = 'u';
    CHECK(pthread_mutex_unlock(&mutex), 0);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread[4];
    (void)argv;
    CHECK(sem_init(&waits, 0, 0), 0);
    for (int round = 0; round < 3; round++) {
        CHECK(pthread_mutex_lock(&mutex), 0);
        for (int t = 0; t < 4; t++)
            CHECK(pthread_create(&thread[t], NULL, give_up, NULL), 0);
        for (int t = 0; t < 4; t++)
            CHECK(pthread_join(thread[t], NULL), 0);
        came = 0;
        CHECK(pthread_create(&thread[0], NULL, timed, NULL), 0);
        CHECK(sem_wait(&waits), 0);
        usleep(200000);
        CHECK(pthread_create(&thread[1], NULL, untimed, NULL), 0);
        CHECK(sem_wait(&waits), 0);
        usleep(200000);
        CHECK(pthread_mutex_unlock(&mutex), 0);
        CHECK(pthread_join(thread[0], NULL), 0);
        CHECK(pthread_join(thread[1], NULL), 0);
        CHECK(came, 2);
        if (argc > 1)
            CHECK(strcmp(order, "tu"), 0);
    }
    /* Who gave up is in nobody's way. */
    CHECK(pthread_mutex_trylock(&mutex), 0);
    CHECK(pthread_mutex_unlock(&mutex), 0);
    CHECK(pthread_mutex_destroy(&mutex), 0);
    puts("timed");
    return 0;
}
