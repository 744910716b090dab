/* threads N: N threads one after the other, each taking locks, some ending
 * while they hold one; prints by how many KiB the process grew after the
 * first tenth. */
#include "check.h"
#include <semaphore.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, pair[2];
static long count;

static void *take(void *end_holding)
{
    CHECK(pthread_mutex_lock(&mutex), 0);
    count++;
    CHECK(pthread_mutex_unlock(&mutex), 0);
    pthread_mutex_lock(&pair[0]);
    pthread_mutex_lock(&pair[1]);
    pthread_mutex_unlock(&pair[0]);
    if (!end_holding)
        pthread_mutex_unlock(&pair[1]);
    return NULL;
}

static long resident(void)
{
    long total, pages;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(fscanf(file, "%ld %ld", &total, &pages), 2);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE) / 1024;
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 1000, before = 0;
    for (long i = 0; i < n; i++) {
        pthread_t thread;
        int end_holding = i % 100 == 7;
        if (i == n / 10)
            before = resident();
        CHECK(pthread_create(&thread, NULL, take, (void *)(long)end_holding), 0);
        CHECK(pthread_join(thread, NULL), 0);
        if (end_holding)
            CHECK(pthread_mutex_unlock(&pair[1]), 0);
    }
    CHECK(count, n);
    printf("%ld\n", resident() - before);
    return 0;
}
