/* 4 threads, each of which runs at least 2 * 2,000,000 instructions. */
#include <pthread.h>
#include <stddef.h>

static void *loop(void *unused)
{
	asm volatile("mov $2000000, %%ecx\n1: dec %%ecx\n jnz 1b" ::: "ecx");
	return unused;
}

int main(void)
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, loop, NULL))
			return 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
