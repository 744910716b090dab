/* The kernel's generic ticket lock, from its own header. */
#include "locklab_kernel.h"
#include <asm-generic/spinlock_types.h>
#include LOCKLAB_KERNEL_FILE

LOCKLAB_LOCK(ticket, arch_spinlock_t, lab_no_context);
LOCKLAB_FIFO();

void lab_lock(void *lock, void *ctx)
{
	(void)ctx;
	arch_spin_lock(lock);
}

int lab_trylock(void *lock, void *ctx)
{
	(void)ctx;
	return arch_spin_trylock(lock);
}

void lab_unlock(void *lock, void *ctx)
{
	(void)ctx;
	arch_spin_unlock(lock);
}

int lab_is_locked(const void *lock)
{
	return arch_spin_is_locked((arch_spinlock_t *)lock);
}
