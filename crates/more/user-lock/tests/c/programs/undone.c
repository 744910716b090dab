/* holds: a loop that takes back what it did waits. */
#include <pthread.h>
#include <stdatomic.h>

static atomic_int busy;

static void *take(void *unused)
{
	while (atomic_fetch_add(&busy, 1) != 0)
		atomic_fetch_sub(&busy, 1);
	atomic_fetch_sub(&busy, 1);
	return unused;
}

int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, take, NULL);
	take(0);
	pthread_join(thread, NULL);
}
