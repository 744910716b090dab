/* gcc -O2 -pthread gains.c; ./gains KIND: four threads for half a second.
   With a lock for each thread these are four times as fast, since they sleep 500 us under one lock:
   mutex, rwlock, semaphore. A bound below 200 % is false.
   No lock makes these faster: sleep (each has a mutex of its own), pipe (two threads hand a byte to
   each other), queue (one fills, and others wait for a condition), short (50 ns of each 50 us are
   under the mutex; how often threads meet depends on the machine, so no test runs it). A bound above 10 % is of no use, and nothing may be advised. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static atomic_int stop, items;
static pthread_mutex_t mutex[4];
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static int ends[2][2];
static volatile unsigned sink;
static const char *kind;

static __attribute__((noinline)) void work(long n) {
    unsigned x = 1;
    for (long i = 0; i < n; i++)
        x = x * 1664525u + 1013904223u;
    sink = x;
}

static int is(const char *name) { return !strcmp(kind, name); }

static void turn(long own) {
    char byte = 0;
    if (is("mutex") || is("sleep")) {
        pthread_mutex_t *held = &mutex[is("sleep") ? own : 0];
        pthread_mutex_lock(held);
        usleep(500);
        pthread_mutex_unlock(held);
    } else if (is("rwlock")) {
        pthread_rwlock_wrlock(&rwlock);
        usleep(500);
        pthread_rwlock_unlock(&rwlock);
    } else if (is("semaphore")) {
        sem_wait(&semaphore);
        usleep(500);
        sem_post(&semaphore);
    } else if (is("pipe")) {
        if (own > 1 || read(ends[own][0], &byte, 1) != 1 || write(ends[!own][1], &byte, 1) != 1)
            usleep(1000);
        work(5000);
    } else if (is("queue")) {
        if (own == 0)
            usleep(500);
        pthread_mutex_lock(&mutex[0]);
        while (own > 0 && items == 0 && !stop)
            pthread_cond_wait(&filled, &mutex[0]);
        items += own == 0 ? 1 : items > 0 ? -1 : 0;
        pthread_mutex_unlock(&mutex[0]);
        if (own == 0)
            pthread_cond_signal(&filled);
    } else {
        pthread_mutex_lock(&mutex[0]);
        work(20);
        pthread_mutex_unlock(&mutex[0]);
        work(40000);
    }
}

static void *body(void *own) {
    while (!stop)
        turn((long)own);
    /* Who waits has the mutex from its look at `stop` until it sleeps. */
    pthread_mutex_lock(&mutex[0]);
    pthread_cond_broadcast(&filled);
    pthread_mutex_unlock(&mutex[0]);
    return 0;
}

int main(int count, char **words) {
    pthread_t threads[4];
    kind = count > 1 ? words[1] : "short";
    sem_init(&semaphore, 0, 1);
    for (long i = 0; i < 4; i++)
        pthread_mutex_init(&mutex[i], 0);
    if (pipe(ends[0]) || pipe(ends[1]) || write(ends[0][1], "", 1) != 1)
        return 1;
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, body, (void *)i);
    usleep(500000);
    stop = 1;
    /* Ends the reads of both, whoever of them has ended. */
    for (int i = 0; i < 2; i++)
        if (write(ends[i][1], "", 1) != 1)
            return 1;
    for (int i = 0; i < 4; i++)
        if (pthread_join(threads[i], 0))
            return 1;
    return 0;
}
