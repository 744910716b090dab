/* holds: a consumer waits for a condition. */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t full = PTHREAD_COND_INITIALIZER;
static int items;

static void *consume(void *unused)
{
	pthread_mutex_lock(&mutex);
	while (items == 0)
		pthread_cond_wait(&full, &mutex);
	items--;
	pthread_mutex_unlock(&mutex);
	return unused;
}

#ifndef CONSUMERS
#define CONSUMERS 1
#endif

int main(void)
{
	pthread_t threads[CONSUMERS];
	for (int i = 0; i < CONSUMERS; i++)
		pthread_create(&threads[i], NULL, consume, NULL);
	pthread_mutex_lock(&mutex);
	items = CONSUMERS;
	pthread_mutex_unlock(&mutex);
	pthread_cond_signal(&full);
	for (int i = 0; i < CONSUMERS; i++)
		pthread_join(threads[i], NULL);
}
