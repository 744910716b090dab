/* The queue lock of Mellor-Crummey and Scott, 1991: the twin of `mcs`. */
#include <locklab_lock.h>
#include <stdatomic.h>
#include <stdint.h>

struct node {
	_Atomic(struct node *) next;
	_Atomic uint32_t granted;
};
struct mcs {
	_Atomic(struct node *) tail;
};
LOCKLAB_LOCK(mcs, struct mcs, struct node);
LOCKLAB_FIFO();

void lab_lock(void *lock, void *ctx)
{
	struct mcs *l = lock;
	struct node *node = ctx;
	atomic_store_explicit(&node->next, 0, memory_order_relaxed);
	struct node *before = atomic_exchange_explicit(&l->tail, node, memory_order_acq_rel);
	if (!before)
		return;
	atomic_store_explicit(&node->granted, 0, memory_order_relaxed);
	atomic_store_explicit(&before->next, node, memory_order_release);
	while (!atomic_load_explicit(&node->granted, memory_order_acquire))
		lab_relax();
}

int lab_trylock(void *lock, void *ctx)
{
	struct mcs *l = lock;
	struct node *node = ctx, *nobody = 0;
	atomic_store_explicit(&node->next, 0, memory_order_relaxed);
	return atomic_compare_exchange_strong_explicit(&l->tail, &nobody, node,
						       memory_order_acq_rel,
						       memory_order_relaxed);
}

void lab_unlock(void *lock, void *ctx)
{
	struct mcs *l = lock;
	struct node *node = ctx, *tail = node, *next;
	if (!atomic_load_explicit(&node->next, memory_order_relaxed) &&
	    atomic_compare_exchange_strong_explicit(&l->tail, &tail, (struct node *)0,
						    memory_order_release, memory_order_relaxed))
		return;
	while (!(next = atomic_load_explicit(&node->next, memory_order_acquire)))
		lab_relax();
	atomic_store_explicit(&next->granted, 1, memory_order_release);
}
