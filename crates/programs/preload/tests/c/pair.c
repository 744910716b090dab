/* What a lock and an unlock of one mutex cost.
 *
 * pair THREADS MICROSECONDS BATCHES CRITICAL NON_CRITICAL
 *   THREADS threads, each pinned to a CPU of its own as far as there are,
 *   lock, work, unlock and work for MICROSECONDS. Work of length n is n + 1
 *   units of five dependent multiplications, about 15 cycles; in the critical
 *   section they read and write a line that all share. By time and not by
 *   count: when all threads do the same number, the last ones of an unfair
 *   lock run alone, and it looks faster than it is. A batch in which another
 *   program took a thread's CPU away does not count and is done again, up to
 *   20 times BATCHES, unless there are more threads than CPUs, which take them
 *   from one another. Prints, of the batch with the median time, the
 *   nanoseconds a pair of all threads together; how often in a hundred pairs
 *   the mutex went to another thread than before; the share of the thread
 *   that got least, in per cent of an equal one; how many batches counted; and
 *   the nanoseconds of CPU time a pair.
 */
#include "check.h"
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

#define MOST_THREADS 64

static pthread_mutex_t mutex __attribute__((aligned(64))) = PTHREAD_MUTEX_INITIALIZER;

/* What the mutex protects, on a line of its own. */
static struct {
    unsigned long work;
    unsigned long turns;
    unsigned long handovers;
    long last;
} shared __attribute__((aligned(64)));

static struct {
    unsigned long work, pairs, switches, cpu;
} own[MOST_THREADS] __attribute__((aligned(128)));

static struct {
    /* How many threads have come to the start or the end of a batch. */
    atomic_long arrived;
    /* When the first thread began, and the first saw that time is up; 0
     * until then. */
    atomic_ulong start, end;
} batch_now __attribute__((aligned(128)));

static long batches, critical, non_critical, microseconds;
static int threads;
static atomic_int finished;

static unsigned long of_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000ul + t.tv_nsec;
}

static unsigned long now(void)
{
    return of_clock(CLOCK_MONOTONIC);
}

/* Until all threads are here, and run: none has to be woken. */
static void meet(long *meeting)
{
    long all = ++*meeting * threads;
    atomic_fetch_add(&batch_now.arrived, 1);
    for (long i = 1; atomic_load(&batch_now.arrived) < all; i++)
        if (i % 4096 == 0)
            sched_yield();
}

/* How often another program had this CPU although the thread would run. */
static unsigned long taken_away(void)
{
    struct rusage used;
    getrusage(RUSAGE_THREAD, &used);
    return used.ru_nivcsw;
}

static inline void units(unsigned long *work, long length)
{
    unsigned long x = *work;
    for (long n = 0; n <= length; n++)
        for (int i = 0; i < 5; i++) {
            x *= 0x9e3779b97f4a7c15u;
            __asm__ volatile("" : "+r"(x));
        }
    *(volatile unsigned long *)work = x;
}

static void batch(long me)
{
    unsigned long private = me + 1, pairs = 0, none = 0;
    atomic_compare_exchange_strong(&batch_now.start, &none, now());
    unsigned long deadline = batch_now.start + microseconds * 1000;
    while (!atomic_load_explicit(&batch_now.end, memory_order_relaxed)) {
        pthread_mutex_lock(&mutex);
        units(&shared.work, critical);
        shared.turns++;
        if (shared.last != me) {
            shared.last = me;
            shared.handovers++;
        }
        pthread_mutex_unlock(&mutex);
        units(&private, non_critical);
        if (++pairs % 64 == 0) {
            unsigned long time = now();
            none = 0;
            if (time >= deadline)
                atomic_compare_exchange_strong(&batch_now.end, &none, time);
        }
    }
    own[me].pairs = pairs;
    own[me].work += private;
}

struct batch {
    double ns, handovers, share, cpu;
};

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct batch *results;
static long counted;

/* By thread 0, between two batches. */
static void note(unsigned long handovers)
{
    unsigned long sum = 0, least = -1ul, switches = 0, cpu = 0;
    for (int i = 0; i < threads; i++) {
        sum += own[i].pairs;
        least = own[i].pairs < least ? own[i].pairs : least;
        switches += own[i].switches;
        cpu += own[i].cpu;
    }
    if (switches != 0 && threads <= sysconf(_SC_NPROCESSORS_ONLN))
        return;
    results[counted].ns = (double)(batch_now.end - batch_now.start) / sum;
    results[counted].handovers = 100.0 * handovers / sum;
    results[counted].share = 100.0 * least * threads / sum;
    results[counted].cpu = (double)cpu / sum;
    counted++;
}

static void *work(void *number)
{
    long me = (long)number, meeting = 0;
    unsigned long all = 0;
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(me % sysconf(_SC_NPROCESSORS_ONLN), &cpu);
    pthread_setaffinity_np(pthread_self(), sizeof cpu, &cpu);
    for (long b = 0; b < 20 * batches && !finished; b++) {
        unsigned long handovers = shared.handovers;
        meet(&meeting);
        if (me == 0)
            batch_now.start = batch_now.end = 0;
        /* Also not between the meeting and the start. */
        unsigned long before = taken_away();
        meet(&meeting);
        unsigned long cpu = of_clock(CLOCK_THREAD_CPUTIME_ID);
        batch(me);
        own[me].cpu = of_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
        own[me].switches = taken_away() - before;
        all += own[me].pairs;
        meet(&meeting);
        if (me == 0) {
            note(shared.handovers - handovers);
            finished = counted == batches;
        }
        meet(&meeting);
    }
    return (void *)all;
}

static void contend(void)
{
    pthread_t thread[MOST_THREADS];
    unsigned long all = 0;
    results = calloc(batches, sizeof *results);
    shared.work = 1;
    shared.last = -1;
    for (long i = 0; i < threads; i++)
        CHECK(pthread_create(&thread[i], NULL, work, (void *)i), 0);
    for (int i = 0; i < threads; i++) {
        void *pairs;
        CHECK(pthread_join(thread[i], &pairs), 0);
        all += (unsigned long)pairs;
    }
    CHECK(shared.turns, all);
    if (counted == 0) {
        fputs("pair: other programs took the CPUs away in every batch\n", stderr);
        exit(3);
    }
    qsort(results, counted, sizeof *results, order);
    struct batch *median = &results[counted / 2];
    printf("%.3f %.2f %.1f %ld %.3f\n", median->ns, median->handovers, median->share, counted,
           median->cpu);
}

int main(int argc, char **argv)
{
    if (argc != 6 || (threads = atoi(argv[1])) <= 0 || threads > MOST_THREADS) {
        fputs("usage: pair THREADS MICROSECONDS BATCHES CRITICAL NON_CRITICAL\n", stderr);
        return 2;
    }
    batches = atol(argv[3]);
    critical = atol(argv[4]);
    non_critical = atol(argv[5]);
    microseconds = atol(argv[2]);
    contend();
    return 0;
}
