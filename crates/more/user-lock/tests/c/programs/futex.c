/* holds: a thread sleeps on a futex until it is woken. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int word;

static void *sleeper(void *unused)
{
	while (atomic_load(&word) == 0)
		syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
	return unused;
}

int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, sleeper, NULL);
	atomic_store(&word, 1);
#ifndef FORGETS
	syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
#endif
	pthread_join(thread, NULL);
}
