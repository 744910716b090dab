/* Tickets. -DACQ2RX: waits by relaxed loads; -DREL2RX: releases by a relaxed store. */
#include "orders.h"

struct lock {
	_Atomic unsigned next, serving;
};
LOCKLAB_LOCK(ticketlock, struct lock, lab_no_context);
LOCKLAB_FIFO();

void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock;
	unsigned mine = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
	(void)ctx;
	while (atomic_load_explicit(&l->serving, ACQUIRE) != mine)
		lab_relax();
}

void lab_unlock(void *lock, void *ctx)
{
	struct lock *l = lock;
	unsigned mine = atomic_load_explicit(&l->serving, memory_order_relaxed);
	(void)ctx;
	atomic_store_explicit(&l->serving, mine + 1, RELEASE);
}
