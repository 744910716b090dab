/* A mutex that sleeps, which counts those who wait beside its word, in the manner of
 * musl. -DACQ2RX, -DREL2RX: as mutex.c. */
#include "orders.h"

enum { FREE, HELD, AWAITED };
struct lock {
	_Atomic int state, waiters;
};
LOCKLAB_LOCK(mutex_musl, struct lock, lab_no_context);

static int swap_if(struct lock *l, int old, int new)
{
	atomic_compare_exchange_strong_explicit(&l->state, &old, new, ACQUIRE,
						memory_order_relaxed);
	return old;
}

int lab_trylock(void *lock, void *ctx)
{
	(void)ctx;
	return swap_if(lock, FREE, HELD) == FREE;
}

void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock;
	if (lab_trylock(lock, ctx))
		return;
	atomic_fetch_add_explicit(&l->waiters, 1, memory_order_relaxed);
	for (;;) {
		int before = swap_if(l, FREE, AWAITED);
		if (before == FREE)
			break;
		if (before == HELD)
			before = swap_if(l, HELD, AWAITED);
		if (before != FREE)
			lab_futex_wait(&l->state, AWAITED);
	}
	atomic_fetch_sub_explicit(&l->waiters, 1, memory_order_relaxed);
}

void lab_unlock(void *lock, void *ctx)
{
	struct lock *l = lock;
	int waiters = atomic_load_explicit(&l->waiters, memory_order_relaxed);
	(void)ctx;
	if (atomic_exchange_explicit(&l->state, FREE, RELEASE) == AWAITED || waiters > 0)
		lab_futex_wake(&l->state, 1);
}
