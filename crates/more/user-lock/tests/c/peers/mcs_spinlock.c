/* A queue in which each is told by the one before it. -DACQ2RX: waits by relaxed loads;
 * -DREL2RX: is told by relaxed stores. */
#include "orders.h"

struct node {
	_Alignas(64) _Atomic(struct node *) next;
	_Atomic int waits;
};
struct lock {
	_Atomic(struct node *) tail;
};
LOCKLAB_LOCK(mcs_spinlock, struct lock, struct node);
LOCKLAB_FIFO();

void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock;
	struct node *mine = ctx, *before;
	atomic_store_explicit(&mine->next, NULL, memory_order_relaxed);
	atomic_store_explicit(&mine->waits, 1, memory_order_relaxed);
	before = atomic_exchange_explicit(&l->tail, mine, memory_order_acq_rel);
	if (!before)
		return;
	atomic_store_explicit(&before->next, mine, memory_order_release);
	while (atomic_load_explicit(&mine->waits, ACQUIRE))
		lab_relax();
}

void lab_unlock(void *lock, void *ctx)
{
	struct lock *l = lock;
	struct node *mine = ctx, *last = mine, *next;
	if (atomic_compare_exchange_strong_explicit(&l->tail, &last, NULL, memory_order_release,
						    memory_order_relaxed))
		return;
	while (!(next = atomic_load_explicit(&mine->next, memory_order_acquire)))
		lab_relax();
	atomic_store_explicit(&next->waits, 0, RELEASE);
}
