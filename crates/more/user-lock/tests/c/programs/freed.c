/* use after free: a thread may be late. */
#include <pthread.h>
#include <stdlib.h>

static void *use(void *block)
{
	*(int *)block = 1;
	return 0;
}

int main(void)
{
	pthread_t thread;
	int *block = malloc(sizeof *block);
	pthread_create(&thread, NULL, use, block);
	free(block);
	pthread_join(thread, NULL);
}
