/* The kernel's MCS lock, from its own header. */
#include "locklab_kernel.h"
#include LOCKLAB_KERNEL_FILE

struct locklab_mcs {
	struct mcs_spinlock *tail;
};
LOCKLAB_LOCK(mcs, struct locklab_mcs, struct mcs_spinlock);
LOCKLAB_FIFO();

void lab_lock(void *lock, void *ctx)
{
	mcs_spin_lock(&((struct locklab_mcs *)lock)->tail, ctx);
}

void lab_unlock(void *lock, void *ctx)
{
	mcs_spin_unlock(&((struct locklab_mcs *)lock)->tail, ctx);
}

int lab_is_locked(const void *lock)
{
	return READ_ONCE(((const struct locklab_mcs *)lock)->tail) != NULL;
}
