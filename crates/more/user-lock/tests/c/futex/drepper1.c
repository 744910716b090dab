/* The first mutex of U. Drepper, "Futexes Are Tricky" (2004), from its description: a
 * count of all who have tried since the last release. Each try adds to it, so that it
 * wraps around: then the lock is acquired twice, or a wake-up is lost. That is 2^32 tries
 * away as it is, two with -DSTEP=0x80000000u, which leaves the count one bit. */
#include <linux/futex.h>
#include <locklab_lock.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef STEP
#define STEP 1u
#endif

struct mutex {
	_Atomic unsigned count;
};
LOCKLAB_LOCK(drepper1, struct mutex, lab_no_context);

void lab_lock(void *lock, void *ctx)
{
	struct mutex *m = lock;
	unsigned before;
	(void)ctx;
	while ((before = atomic_fetch_add_explicit(&m->count, STEP, memory_order_acquire)) != 0)
		syscall(SYS_futex, &m->count, FUTEX_WAIT_PRIVATE, before + STEP, NULL, NULL, 0);
}

void lab_unlock(void *lock, void *ctx)
{
	struct mutex *m = lock;
	(void)ctx;
	atomic_store_explicit(&m->count, 0, memory_order_release);
	syscall(SYS_futex, &m->count, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
