/* null pointer: a pointer is read too early. */
#include <pthread.h>
#include <stdatomic.h>

static int value;
static int *_Atomic pointer;

static void *publish(void *unused)
{
	atomic_store(&pointer, &value);
	return unused;
}

int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, publish, NULL);
	int seen = *atomic_load(&pointer);
	pthread_join(thread, NULL);
	return seen;
}
