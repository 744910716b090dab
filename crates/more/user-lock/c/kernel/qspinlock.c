/* The kernel's queued spinlock, from its own file. */
#include "locklab_kernel.h"
#include LOCKLAB_KERNEL_FILE

LOCKLAB_LOCK(qspinlock, struct qspinlock, lab_no_context);
LOCKLAB_FIFO();
LOCKLAB_CPUS(NR_CPUS);

void lab_init(void *lock)
{
	(void)lock;
	locklab_copy_per_cpu();
}

void lab_lock(void *lock, void *ctx)
{
	(void)ctx;
	queued_spin_lock(lock);
}

int lab_trylock(void *lock, void *ctx)
{
	(void)ctx;
	return queued_spin_trylock(lock);
}

void lab_unlock(void *lock, void *ctx)
{
	(void)ctx;
	queued_spin_unlock(lock);
}

int lab_is_locked(const void *lock)
{
	return queued_spin_is_locked((struct qspinlock *)lock);
}
