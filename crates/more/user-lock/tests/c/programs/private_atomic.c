/* holds: an atomic variable of a thread's own is not shared, and a loop that retries. */
#include <assert.h>
#include <stdatomic.h>
#include <threads.h>

static atomic_int count;

static int add(void *unused)
{
	(void)unused;
	_Atomic int own = 1;
	int old = atomic_load(&count);
	while (!atomic_compare_exchange_weak(&count, &old, old + atomic_load(&own)))
		;
	return 0;
}

int main(void)
{
	thrd_t threads[2];
	for (int i = 0; i < 2; i++)
		thrd_create(&threads[i], add, 0);
	for (int i = 0; i < 2; i++)
		thrd_join(threads[i], 0);
	assert(atomic_load(&count) == 2);
}
