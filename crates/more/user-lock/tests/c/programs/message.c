/* holds: a message is passed by a flag. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifndef ORDER
#define ORDER memory_order_acquire
#endif

static int data;
static atomic_int flag;

static void *writer(void *unused)
{
	data = 42;
	atomic_store_explicit(&flag, 1, memory_order_release);
	return unused;
}

static void *reader(void *unused)
{
	while (!atomic_load_explicit(&flag, ORDER))
		;
	assert(data == 42);
	return unused;
}

int main(void)
{
	pthread_t threads[2];
	pthread_create(&threads[0], NULL, writer, NULL);
	pthread_create(&threads[1], NULL, reader, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}
