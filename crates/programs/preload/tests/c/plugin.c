/* A library that a program opens: with a mutex of its own, taken by its
 * constructor too. */
#define _GNU_SOURCE
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static long count;

__attribute__((constructor)) static void start(void)
{
    pthread_mutex_lock(&mutex);
    count = 1000;
    pthread_mutex_unlock(&mutex);
}

long plugin_count(void);
long plugin_count(void)
{
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&mutex);
    long now = ++count;
    pthread_mutex_unlock(&mutex);
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&recursive);
    return now;
}
