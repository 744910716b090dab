/* holds: a counter under a mutex, which a recursive one guards too. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive;
static __thread int own;
static int *count;

static void *add(void *unused)
{
	pthread_mutex_lock(&recursive);
	pthread_mutex_lock(&recursive);
	own++;
	pthread_mutex_unlock(&recursive);
	if (pthread_mutex_trylock(&mutex) == EBUSY)
		pthread_mutex_lock(&mutex);
	++*count;
	pthread_mutex_unlock(&mutex);
	pthread_mutex_unlock(&recursive);
	assert(own == 1);
	return unused;
}

int main(void)
{
	pthread_mutexattr_t kind;
	pthread_mutexattr_init(&kind);
	pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&recursive, &kind);
	count = calloc(1, sizeof *count);
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, add, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert(*count == 2);
	free(count);
}
