/* What the programs have in common: threads that take turns for half a second, and
 * the rate. With a CPU for each thread, each has one of its own: a thread that waits
 * without sleeping on the CPU of the holder keeps it from releasing, and whether the
 * system begins two threads on one CPU differs from run to run. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 64 };

static unsigned long turns[MOST][16];
static volatile int over;

/* Takes turns, counted in turns[me][0], until it is over. */
static void *run(void *me);

/* Gives each of so many threads a CPU, if there are enough. */
static void spread(pthread_t *threads, long number)
{
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) || CPU_COUNT(&all) < number)
        return;
    for (int cpu = 0, i = 0; cpu < CPU_SETSIZE && i < number; cpu++) {
        if (!CPU_ISSET(cpu, &all))
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        pthread_setaffinity_np(threads[i++], sizeof one, &one);
    }
}

/* Runs so many threads and prints their rate; the status of the program. */
static int measured(long number)
{
    pthread_t threads[MOST];
    unsigned long all = 0;
    if (number < 1 || number > MOST)
        return 2;
    for (long i = 0; i < number; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)i))
            return 2;
    spread(threads, number);
    struct timespec while_running = {.tv_nsec = 500000000};
    nanosleep(&while_running, NULL);
    over = 1;
    for (long i = 0; i < number; i++)
        pthread_join(threads[i], NULL);
    for (long i = 0; i < number; i++)
        all += turns[i][0];
    printf("rate %lu\n", all);
    return 0;
}
