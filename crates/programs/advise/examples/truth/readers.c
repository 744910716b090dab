/* Threads that read a table under a reader-writer lock; one turn in `every`
 * writes it. */
#include "threads.h"

enum { ENTRIES = 64 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static unsigned long table[ENTRIES];
static long every;

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
    long number = count > 1 ? atol(words[1]) : 2;
    every = count > 2 ? atol(words[2]) : 20;
    if (every < 1)
        return 2;
    return measured(number);
}
