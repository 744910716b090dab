/* DPDK's rte_mcslock as it was until 2020: the node is announced to its
 * predecessor by a relaxed store, so the grant may come before `locked = 1`
 * and be lost, and the waiter hangs for ever.
 * Source: the description of DPDK commit 021b698eb56e ("fix hang in weak
 * memory model"), by D. Behrens. Written from it; not DPDK's code. */
#include <locklab_lock.h>
#include <stdatomic.h>

struct node {
	_Atomic(struct node *) next;
	_Atomic int locked;
};
struct mcs {
	_Atomic(struct node *) tail;
};
LOCKLAB_LOCK(dpdk_mcslock, struct mcs, struct node);
LOCKLAB_FIFO();

void lab_lock(void *lock, void *ctx)
{
	struct mcs *l = lock;
	struct node *me = ctx;
	atomic_store_explicit(&me->locked, 1, memory_order_relaxed);
	atomic_store_explicit(&me->next, NULL, memory_order_relaxed);
	struct node *before = atomic_exchange_explicit(&l->tail, me, memory_order_acq_rel);
	if (!before)
		return;
#ifdef FIXED
	atomic_store_explicit(&before->next, me, memory_order_release);
#else
	atomic_store_explicit(&before->next, me, memory_order_relaxed);
#endif
	while (atomic_load_explicit(&me->locked, memory_order_acquire))
		lab_relax();
}

void lab_unlock(void *lock, void *ctx)
{
	struct mcs *l = lock;
	struct node *me = ctx, *last = me, *next;
	next = atomic_load_explicit(&me->next, memory_order_acquire);
	if (!next) {
		if (atomic_compare_exchange_strong_explicit(&l->tail, &last, NULL,
							    memory_order_release,
							    memory_order_relaxed))
			return;
		while (!(next = atomic_load_explicit(&me->next, memory_order_acquire)))
			lab_relax();
	}
	atomic_store_explicit(&next->locked, 0, memory_order_release);
}
