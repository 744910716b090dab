/* A program with a known answer: threads that hold one lock, or each its own,
 * and think, for so many steps of a dependent computation. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 64 };

static struct {
    pthread_mutex_t lock;
    unsigned long value;
    char rest[128];
} sections[MOST];
static unsigned long turns[MOST][16];
static long hold, think, own;
static volatile int over;

static unsigned long steps(unsigned long value, long count)
{
    while (count-- > 0)
        value = value * 6364136223846793005ul + 1442695040888963407ul;
    return value;
}

static void *run(void *argument)
{
    long me = (long)argument, section = own ? me : 0;
    unsigned long value = (unsigned long)me;
    while (!over) {
        pthread_mutex_lock(&sections[section].lock);
        sections[section].value = steps(sections[section].value, hold);
        pthread_mutex_unlock(&sections[section].lock);
        value = steps(value, think);
        turns[me][0]++;
    }
    return (void *)value;
}

int main(int count, char **words)
{
    pthread_t threads[MOST];
    unsigned long all = 0;
    long number = count > 1 ? atol(words[1]) : 2;
    hold = count > 2 ? atol(words[2]) : 10;
    think = count > 3 ? atol(words[3]) : 100;
    own = count > 4 ? atol(words[4]) : 0;
    if (number < 1 || number > MOST)
        return 2;
    for (long i = 0; i < MOST; i++)
        pthread_mutex_init(&sections[i].lock, NULL);
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
