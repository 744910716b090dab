/* deadlock: two mutexes in two orders. */
#include <pthread.h>

static pthread_mutex_t mutexes[2];

static void *both(void *first)
{
	long i = (long)first;
	pthread_mutex_lock(&mutexes[i]);
	pthread_mutex_lock(&mutexes[1 - i]);
	pthread_mutex_unlock(&mutexes[1 - i]);
	pthread_mutex_unlock(&mutexes[i]);
	return 0;
}

int main(void)
{
	pthread_t threads[2];
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, both, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}
