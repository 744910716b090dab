/* An MCS lock whose link is relaxed. In C11 the grant may be overwritten by the waiter's
 * own first store; where address dependencies order and a read-modify-write that acquires
 * and releases is a fence, it may not. -DRELAXED: the exchange orders nothing, and
 * no dependency mends that. */
#include <locklab_lock.h>
#include <stdatomic.h>

#ifdef RELAXED
#define BOTH memory_order_relaxed
#else
#define BOTH memory_order_acq_rel
#endif

struct node {
	_Alignas(64) _Atomic(struct node *) next;
	_Atomic int waits;
};
struct mcs {
	_Atomic(struct node *) tail;
};
LOCKLAB_LOCK(relaxed_link, struct mcs, struct node);

void lab_lock(void *lock, void *ctx)
{
	struct mcs *m = lock;
	struct node *mine = ctx, *before;
	atomic_store_explicit(&mine->next, NULL, memory_order_relaxed);
	atomic_store_explicit(&mine->waits, 1, memory_order_relaxed);
	before = atomic_exchange_explicit(&m->tail, mine, BOTH);
	if (!before)
		return;
	atomic_store_explicit(&before->next, mine, memory_order_relaxed);
	while (atomic_load_explicit(&mine->waits, memory_order_acquire))
		lab_relax();
}

void lab_unlock(void *lock, void *ctx)
{
	struct mcs *m = lock;
	struct node *mine = ctx, *expected = mine, *next;
	next = atomic_load_explicit(&mine->next, memory_order_relaxed);
	if (!next) {
		if (atomic_compare_exchange_strong_explicit(&m->tail, &expected, NULL,
							    memory_order_release,
							    memory_order_relaxed))
			return;
		while (!(next = atomic_load_explicit(&mine->next, memory_order_relaxed)))
			lab_relax();
	}
	atomic_store_explicit(&next->waits, 0, memory_order_release);
}
