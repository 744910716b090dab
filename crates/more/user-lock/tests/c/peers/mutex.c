/* A mutex that sleeps, by a word of three states. -DACQ2RX: acquires by relaxed swaps;
 * -DREL2RX: releases by one. */
#include "orders.h"

enum { FREE, HELD, AWAITED };
struct lock {
	_Atomic int state;
};
LOCKLAB_LOCK(mutex, struct lock, lab_no_context);

int lab_trylock(void *lock, void *ctx)
{
	int free = FREE;
	(void)ctx;
	return atomic_compare_exchange_strong_explicit(&((struct lock *)lock)->state, &free, HELD,
						       ACQUIRE, memory_order_relaxed);
}

void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock;
	if (lab_trylock(lock, ctx))
		return;
	while (atomic_exchange_explicit(&l->state, AWAITED, ACQUIRE) != FREE)
		lab_futex_wait(&l->state, AWAITED);
}

void lab_unlock(void *lock, void *ctx)
{
	struct lock *l = lock;
	(void)ctx;
	if (atomic_exchange_explicit(&l->state, FREE, RELEASE) == AWAITED)
		lab_futex_wake(&l->state, 1);
}
