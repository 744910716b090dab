/* crowd N: N threads that all live at once count under one mutex. */
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all;
static long count;

static void *work(void *unused)
{
    for (int i = 0; i < 20; i++) {
        CHECK(pthread_mutex_lock(&mutex), 0);
        count++;
        CHECK(pthread_mutex_unlock(&mutex), 0);
        if (i == 0)
            pthread_barrier_wait(&all);
    }
    return unused;
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 8;
    pthread_t *thread = malloc(n * sizeof *thread);
    pthread_attr_t small;
    CHECK(pthread_attr_init(&small), 0);
    CHECK(pthread_attr_setstacksize(&small, 64 << 10), 0);
    CHECK(pthread_barrier_init(&all, NULL, n), 0);
    for (long i = 0; i < n; i++)
        CHECK(pthread_create(&thread[i], &small, work, NULL), 0);
    for (long i = 0; i < n; i++)
        CHECK(pthread_join(thread[i], NULL), 0);
    printf("%ld\n", count);
    return 0;
}
