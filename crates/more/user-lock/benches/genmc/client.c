/* Threads that each take a lock once: the test of exclusion for a lock of locklab_lock.h, as a
 * program that locklab verify and GenMC both run. table.sh puts the lock into lock.c;
 * -DTHREADS=N says how many threads there are. */
#include "lock.c"
#include <assert.h>
#include <pthread.h>

#ifndef THREADS
#define THREADS 3
#endif

/* lock_as_program.h declares these types. */
static client_lock lock;
static client_context context[THREADS];
static int shared;

static void *take(void *number)
{
	client_context *mine = &context[(long)number];

	CLIENT_CPU((long)number);
	lab_lock(&lock, mine);
	shared++;
	lab_unlock(&lock, mine);
	return 0;
}

int main(void)
{
	pthread_t thread[THREADS];

	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread[i], 0, take, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], 0);
	assert(shared == THREADS);
	return 0;
}
