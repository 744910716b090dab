/* passed: how often the main thread takes a mutex again before a thread that
 * sleeps for it and is of the lowest priority, on the same CPU, has it. */
#include "check.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int number, had;

static void *sleeper(void *unused)
{
    struct sched_param idle = {0};
    CHECK(sched_setscheduler(0, SCHED_IDLE, &idle), 0);
    atomic_store(&number, syscall(SYS_gettid));
    CHECK(pthread_mutex_lock(&mutex), 0);
    atomic_store(&had, 1);
    CHECK(pthread_mutex_unlock(&mutex), 0);
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

int main(void)
{
    pthread_t thread;
    long passes = 0;
    CHECK(pthread_mutex_lock(&mutex), 0);
    CHECK(pthread_create(&thread, NULL, sleeper, NULL), 0);
    while (!number || !sleeps(number))
        usleep(1000);
    CHECK(pthread_mutex_unlock(&mutex), 0);
    for (;;) {
        CHECK(pthread_mutex_lock(&mutex), 0);
        int over = had;
        CHECK(pthread_mutex_unlock(&mutex), 0);
        if (over)
            break;
        passes++;
    }
    CHECK(pthread_join(thread, NULL), 0);
    printf("%ld\n", passes);
    return 0;
}
