/* The interposer's mutex against glibc's own, in one process, in turns.
 *
 * slices alone|beside|two SLICES [NANOSECONDS]
 *   Runs under the interposer. A slice is a third of a millisecond on one of
 *   two mutexes: one of the interposer, called as every program does, and one of
 *   glibc, whose functions are found in its own library. The two take turns, in
 *   an order that alternates, and each pair of slices is a ratio. `alone`: one
 *   thread in a process that never had another; `beside`: another lives and
 *   sleeps; `two`: two threads, each pinned to a CPU, want the mutex all the
 *   time. NANOSECONDS is about the time between an unlock and the next lock,
 *   0 by default. Prints the median nanoseconds of a lock and an unlock with
 *   glibc and with the interposer, and the median, the 5th and the 95th
 *   percentile of the ratios of time. */
#include "check.h"
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>

enum { MOST = 100000, SLICE_NS = 333333 };

typedef int operation(pthread_mutex_t *);
static struct {
    operation *lock, *unlock;
    pthread_mutex_t mutex __attribute__((aligned(64)));
    /* What the mutex protects. */
    unsigned long count __attribute__((aligned(64)));
} side[2] __attribute__((aligned(128)));

static long units;
static double ratio[MOST], ns[2][MOST];

static unsigned long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ul + t.tv_nsec;
}

static inline void work(void)
{
    unsigned long x = 1;
    for (long i = 0; i < units; i++) {
        x *= 0x9e3779b97f4a7c15u;
        __asm__ volatile("" : "+r"(x));
    }
}

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double at(double *values, long n, double part)
{
    qsort(values, n, sizeof *values, order);
    return values[(long)(part * (n - 1) + 0.5)];
}

/* Until `end`; returns the pairs. */
static long slice(int which, unsigned long end)
{
    operation *lock = side[which].lock, *unlock = side[which].unlock;
    pthread_mutex_t *mutex = &side[which].mutex;
    long pairs = 0;
    do {
        for (int i = 0; i < 64; i++, pairs++) {
            lock(mutex);
            side[which].count++;
            unlock(mutex);
            work();
        }
    } while (now() < end);
    return pairs;
}

/* Two threads meet before and after each slice. */
static atomic_long arrived;
static _Atomic unsigned long deadline;
static _Atomic long other_pairs;
static long slices;

static void meet(long *meeting)
{
    long both = 2 * ++*meeting;
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < both)
        sched_yield();
}

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu % sysconf(_SC_NPROCESSORS_ONLN), &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void *second(void *unused)
{
    long meeting = 0;
    pin(1);
    for (long i = 0; i < 2 * slices; i++) {
        meet(&meeting);
        other_pairs = slice((i + i / 2) % 2, deadline);
        meet(&meeting);
    }
    return unused;
}

static void *sleeps(void *unused)
{
    pause();
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int two = argc > 1 && !strcmp(argv[1], "two");
    if (argc < 3 || (slices = atol(argv[2])) < 1 || slices > MOST) {
        fputs("usage: slices alone|beside|two SLICES [NANOSECONDS]\n", stderr);
        return 2;
    }
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    side[0].lock = (operation *)dlsym(libc, "pthread_mutex_lock");
    side[0].unlock = (operation *)dlsym(libc, "pthread_mutex_unlock");
    side[1].lock = (operation *)dlsym(RTLD_DEFAULT, "pthread_mutex_lock");
    side[1].unlock = (operation *)dlsym(RTLD_DEFAULT, "pthread_mutex_unlock");
    if (side[0].lock == side[1].lock) {
        fputs("slices: there is no interposer\n", stderr);
        return 2;
    }
    if (argc > 3) {
        units = 1000;
        unsigned long start = now();
        for (int i = 0; i < 100; i++)
            work();
        units = (long)(atof(argv[3]) * 1000 * 100 / (now() - start));
    }
    if (!strcmp(argv[1], "beside"))
        CHECK(pthread_create(&thread, NULL, sleeps, NULL), 0);
    if (two)
        CHECK(pthread_create(&thread, NULL, second, NULL), 0);
    pin(0);
    long meeting = 0;
    for (long i = 0; i < 2 * slices; i++) {
        int which = (i + i / 2) % 2;
        unsigned long start = now();
        deadline = start + SLICE_NS;
        if (two)
            meet(&meeting);
        start = now();
        long pairs = slice(which, deadline);
        unsigned long took = now() - start;
        if (two) {
            meet(&meeting);
            pairs += other_pairs;
        }
        ns[which][i / 2] = (double)took / pairs;
        ratio[i / 2] = ns[1][i / 2] / ns[0][i / 2];
    }
    printf("%.2f %.2f ", at(ns[0], slices, 0.5), at(ns[1], slices, 0.5));
    printf("%.3f ", at(ratio, slices, 0.5));
    printf("%.3f ", at(ratio, slices, 0.05));
    printf("%.3f\n", at(ratio, slices, 0.95));
    return 0;
}
