/* Threads that read a table under a reader-writer lock; one turn in `every`
 * writes it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 64, ENTRIES = 64 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static unsigned long table[ENTRIES];
static unsigned long turns[MOST][16];
static long every;
static volatile int over;

static void *run(void *argument)
{
    long me = (long)argument;
    unsigned long drawn = (unsigned long)me + 1, sum = 0;
    while (!over) {
        drawn = drawn * 6364136223846793005ul + 1442695040888963407ul;
        if ((drawn >> 33) % (unsigned long)every == 0) {
            pthread_rwlock_wrlock(&lock);
            for (int i = 0; i < ENTRIES; i++)
                table[i] += drawn;
            pthread_rwlock_unlock(&lock);
        } else {
            pthread_rwlock_rdlock(&lock);
            for (int i = 0; i < ENTRIES; i++)
                sum ^= table[i];
            pthread_rwlock_unlock(&lock);
        }
        for (int i = 0; i < 200; i++)
            sum = sum * 6364136223846793005ul + drawn;
        turns[me][0]++;
    }
    return (void *)sum;
}

int main(int count, char **words)
{
    pthread_t threads[MOST];
    unsigned long all = 0;
    long number = count > 1 ? atol(words[1]) : 2;
    every = count > 2 ? atol(words[2]) : 20;
    if (number < 1 || number > MOST || every < 1)
        return 2;
    for (long i = 0; i < number; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)i))
            return 2;
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
