/* Nanoseconds for a lock and an unlock of one mutex.
 *
 * pair THREADS PAIRS BATCHES [beside]: each batch is PAIRS pairs a thread, all threads
 * started together; prints the median over the batches of the nanoseconds
 * from the first start to the last end, divided by all the pairs made. With `beside`, one more
 * thread lives and sleeps: glibc needs no atomic operations in a process that
 * never had a second thread. */
#include "check.h"
#include <sched.h>

static pthread_mutex_t mutex __attribute__((aligned(64))) = PTHREAD_MUTEX_INITIALIZER;
static long count __attribute__((aligned(64)));
static pthread_barrier_t barrier;
static long pairs, batches;
static int threads;

static void *work(void *number)
{
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET((long)number % sysconf(_SC_NPROCESSORS_ONLN), &cpu);
    pthread_setaffinity_np(pthread_self(), sizeof cpu, &cpu);
    for (long b = 0; b < batches; b++) {
        pthread_barrier_wait(&barrier);
        for (long i = 0; i < pairs; i++) {
            pthread_mutex_lock(&mutex);
            count++;
            pthread_mutex_unlock(&mutex);
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void *wait_for_end(void *unused)
{
    pause();
    return unused;
}

int main(int argc, char **argv)
{
    if (argc == 5) {
        /* Another thread lives, and sleeps. */
        pthread_t sleeper;
        CHECK(pthread_create(&sleeper, NULL, wait_for_end, NULL), 0);
        argc--;
    }
    if (argc != 4) {
        fputs("usage: pair THREADS PAIRS BATCHES [beside]\n", stderr);
        return 2;
    }
    threads = atoi(argv[1]);
    pairs = atol(argv[2]);
    batches = atol(argv[3]);
    double *ns = malloc(batches * sizeof *ns);
    if (threads == 1) {
        for (long b = 0; b < batches; b++) {
            struct timespec t0, t1;
            clock_gettime(CLOCK_MONOTONIC, &t0);
            for (long i = 0; i < pairs; i++) {
                pthread_mutex_lock(&mutex);
                count++;
                pthread_mutex_unlock(&mutex);
            }
            clock_gettime(CLOCK_MONOTONIC, &t1);
            ns[b] = ((t1.tv_sec - t0.tv_sec) * 1e9 + (t1.tv_nsec - t0.tv_nsec)) / pairs;
        }
    } else {
        pthread_t thread[threads];
        pthread_barrier_init(&barrier, NULL, threads + 1);
        for (long i = 0; i < threads; i++)
            CHECK(pthread_create(&thread[i], NULL, work, (void *)i), 0);
        for (long b = 0; b < batches; b++) {
            struct timespec t0, t1;
            clock_gettime(CLOCK_MONOTONIC, &t0);
            pthread_barrier_wait(&barrier);
            pthread_barrier_wait(&barrier);
            clock_gettime(CLOCK_MONOTONIC, &t1);
            ns[b] = ((t1.tv_sec - t0.tv_sec) * 1e9 + (t1.tv_nsec - t0.tv_nsec)) / pairs / threads;
        }
        for (int i = 0; i < threads; i++)
            CHECK(pthread_join(thread[i], NULL), 0);
    }
    CHECK(count, (long)threads * pairs * batches);
    qsort(ns, batches, sizeof *ns, order);
    printf("%.3f\n", ns[batches / 2]);
    return 0;
}
