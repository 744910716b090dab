/* A compare-and-swap loop. -DACQ2RX: it is relaxed; -DREL2RX: releases by a relaxed
 * store. */
#include "orders.h"

struct lock {
	_Atomic int held;
};
LOCKLAB_LOCK(spinlock, struct lock, lab_no_context);

int lab_trylock(void *lock, void *ctx)
{
	int free = 0;
	(void)ctx;
	return atomic_compare_exchange_strong_explicit(&((struct lock *)lock)->held, &free, 1,
						       ACQUIRE, memory_order_relaxed);
}

void lab_lock(void *lock, void *ctx)
{
	while (!lab_trylock(lock, ctx))
		lab_relax();
}

void lab_unlock(void *lock, void *ctx)
{
	(void)ctx;
	atomic_store_explicit(&((struct lock *)lock)->held, 0, RELEASE);
}
