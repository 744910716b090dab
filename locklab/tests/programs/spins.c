/* gcc -O2 -pthread spins.c; ./spins KIND: four threads take one lock for a second, and sleep in it
   each 16th time, so that the others spin however busy the machine is. KIND own: a spinlock of its own; pthread: pthread_spin_lock; try: a mutex that is
   tried until it is free, with sched_yield in between. Without the lock it is several times
   as fast: the first sentence must not say that there is nothing to gain. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static atomic_int stop, word;
static pthread_spinlock_t spinlock;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned sink;
static char kind;

static __attribute__((noinline)) void work(long n) {
    unsigned x = 1;
    for (long i = 0; i < n; i++)
        x = x * 1664525u + 1013904223u;
    sink = x;
}

static void *body(void *none) {
    for (long i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++) {
        int free = 0;
        if (kind == 'o')
            while (!atomic_compare_exchange_weak(&word, &free, 1)) {
                free = 0;
                __builtin_ia32_pause();
            }
        else if (kind == 'p')
            pthread_spin_lock(&spinlock);
        else
            while (pthread_mutex_trylock(&mutex))
                sched_yield();
        work(2000);
        if (i % 16 == 0)
            usleep(200);
        if (kind == 'o')
            atomic_store(&word, 0);
        else if (kind == 'p')
            pthread_spin_unlock(&spinlock);
        else
            pthread_mutex_unlock(&mutex);
        work(2000);
    }
    return none;
}

int main(int count, char **words) {
    pthread_t threads[4];
    kind = count > 1 ? words[1][0] : 'o';
    pthread_spin_init(&spinlock, 0);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, body, 0);
    sleep(1);
    atomic_store(&stop, 1);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    return 0;
}
