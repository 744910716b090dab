/* A test-and-set lock with something for each CPU that it needs while it waits: an
 * acquisition must not be interrupted by another. -DCLAIMS_NOTHING does not say so. */
#include <assert.h>
#include <locklab_lock.h>
#include <stdatomic.h>

struct spin {
	_Atomic int held;
};
static _Atomic int waits[4];
LOCKLAB_LOCK(waits_once, struct spin, lab_no_context);
LOCKLAB_CPUS(4);
#ifndef CLAIMS_NOTHING
LOCKLAB_NO_INTERRUPTS();
#endif

void lab_lock(void *lock, void *ctx)
{
	struct spin *l = lock;
	_Atomic int *mine = &waits[lab_cpu()];
	(void)ctx;
	assert(!atomic_load_explicit(mine, memory_order_relaxed));
	atomic_store_explicit(mine, 1, memory_order_relaxed);
	while (atomic_exchange_explicit(&l->held, 1, memory_order_acquire))
		lab_relax();
	atomic_store_explicit(mine, 0, memory_order_relaxed);
}

void lab_unlock(void *lock, void *ctx)
{
	(void)ctx;
	atomic_store_explicit(&((struct spin *)lock)->held, 0, memory_order_release);
}
