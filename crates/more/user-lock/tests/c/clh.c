/* Craig 1993; Magnusson, Landin and Hagersten 1994: the twin of `clh`. */
#include <locklab_lock.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

struct node {
	alignas(64) _Atomic uint32_t held;
};
struct handle {
	struct node own;
	/* Private to its CPU. */
	alignas(64) struct node *now;
	struct node *before;
};
struct clh {
	alignas(64) _Atomic(struct node *) tail;
	struct node first;
};
LOCKLAB_LOCK(clh, struct clh, struct handle);
LOCKLAB_FIFO();

void lab_lock(void *lock, void *ctx)
{
	struct clh *l = lock;
	struct handle *h = ctx;
	struct node *node = h->now, *before;
	if (!node)
		h->now = node = &h->own;
	atomic_store_explicit(&node->held, 1, memory_order_relaxed);
	before = atomic_exchange_explicit(&l->tail, node, memory_order_acq_rel);
	if (!before)
		before = &l->first;
	h->before = before;
	while (atomic_load_explicit(&before->held, memory_order_acquire))
		lab_relax();
}

void lab_unlock(void *lock, void *ctx)
{
	struct handle *h = ctx;
	struct node *node = h->now;
	(void)lock;
	h->now = h->before;
	atomic_store_explicit(&node->held, 0, memory_order_release);
}
