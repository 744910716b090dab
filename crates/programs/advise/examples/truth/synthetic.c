/* A program with a known answer: threads that hold one lock, or each its own,
 * and think, for so many steps of a dependent computation. */
#include "threads.h"

static struct {
    pthread_mutex_t lock;
    unsigned long value;
    char rest[128];
} sections[MOST];
static long hold, think, own;

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
    long number = count > 1 ? atol(words[1]) : 2;
    hold = count > 2 ? atol(words[2]) : 10;
    think = count > 3 ? atol(words[3]) : 100;
    own = count > 4 ? atol(words[4]) : 0;
    for (long i = 0; i < MOST; i++)
        pthread_mutex_init(&sections[i].lock, NULL);
    return measured(number);
}
