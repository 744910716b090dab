/* convoy THREADS TURNS: THREADS threads take one mutex TURNS times each. All
 * sleep before it when the first of them may begin. */
#include "check.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long turns, count;
static atomic_int numbers[4096];
static atomic_long arrived;

static void *work(void *unused)
{
    atomic_store(&numbers[atomic_fetch_add(&arrived, 1)], syscall(SYS_gettid));
    for (long i = 0; i < turns; i++) {
        CHECK(pthread_mutex_lock(&mutex), 0);
        count++;
        CHECK(pthread_mutex_unlock(&mutex), 0);
    }
    return unused;
}

static int sleeps(int thread)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    char *end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    fclose(file);
    return end && end[2] == 'S';
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 16;
    turns = argc > 2 ? atol(argv[2]) : 1000;
    pthread_t *thread = malloc(n * sizeof *thread);
    pthread_attr_t small;
    CHECK(pthread_attr_init(&small), 0);
    CHECK(pthread_attr_setstacksize(&small, 64 << 10), 0);
    CHECK(pthread_mutex_lock(&mutex), 0);
    for (long i = 0; i < n; i++)
        CHECK(pthread_create(&thread[i], &small, work, NULL), 0);
    for (long i = 0; i < n; i++)
        while (!atomic_load(&numbers[i]) || !sleeps(numbers[i]))
            usleep(1000);
    CHECK(pthread_mutex_unlock(&mutex), 0);
    for (long i = 0; i < n; i++)
        CHECK(pthread_join(thread[i], NULL), 0);
    printf("%ld\n", count);
    return 0;
}
