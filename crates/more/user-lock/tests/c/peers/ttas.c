/* Test and test-and-set. -DACQ2RX: acquires by a relaxed exchange; -DREL2RX: releases by
 * a relaxed store. */
#include "orders.h"

struct lock {
	_Atomic int held;
};
LOCKLAB_LOCK(ttas, struct lock, lab_no_context);

void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock;
	(void)ctx;
	do {
		while (atomic_load_explicit(&l->held, memory_order_relaxed))
			lab_relax();
	} while (atomic_exchange_explicit(&l->held, 1, ACQUIRE));
}

void lab_unlock(void *lock, void *ctx)
{
	(void)ctx;
	atomic_store_explicit(&((struct lock *)lock)->held, 0, RELEASE);
}
