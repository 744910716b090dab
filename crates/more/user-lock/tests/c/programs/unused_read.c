/* data race: nothing uses what is read. */
#include <pthread.h>
#include <stdatomic.h>

static int data;
static atomic_int ready;

static void *writes(void *unused)
{
	data = 1;
	atomic_store_explicit(&ready, 1, memory_order_release);
	return unused;
}

int main(void)
{
	pthread_t thread;
	int seen = 0;
	pthread_create(&thread, NULL, writes, NULL);
	if (atomic_load_explicit(&ready, memory_order_relaxed))
		seen = data;
	(void)seen;
}
