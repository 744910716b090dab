/* A queue in which each waits for the one before it. -DACQ2RX: by relaxed loads. */
#include "orders.h"

struct node {
	_Alignas(64) _Atomic int waits;
};
struct lock {
	_Atomic(struct node *) tail;
	struct node first;
};
struct context {
	struct node *mine, *before;
	struct node own;
};
LOCKLAB_LOCK(clh_mutex, struct lock, struct context);
LOCKLAB_FIFO();

void lab_init(void *lock)
{
	struct lock *l = lock;
	atomic_init(&l->tail, &l->first);
}

void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock;
	struct context *c = ctx;
	if (!c->mine)
		c->mine = &c->own;
	atomic_store_explicit(&c->mine->waits, 1, memory_order_relaxed);
	c->before = atomic_exchange_explicit(&l->tail, c->mine, memory_order_acq_rel);
	while (atomic_load_explicit(&c->before->waits, ACQUIRE))
		lab_relax();
}

void lab_unlock(void *lock, void *ctx)
{
	struct context *c = ctx;
	struct node *mine = c->mine;
	(void)lock;
	c->mine = c->before;
	atomic_store_explicit(&mine->waits, 0, RELEASE);
}
