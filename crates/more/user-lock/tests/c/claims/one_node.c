/* An MCS lock with one node for each CPU, which it needs until it releases: a CPU has one
 * acquisition at a time. -DNESTING=n claims n, -DCLAIMS_NOTHING any number. */
#include <locklab_lock.h>
#include <stdatomic.h>

#ifdef LOCKLAB_CHECKER
#define CPUS 4
#else
#define CPUS 512
#endif
#ifndef NESTING
#define NESTING 1
#endif

struct node {
	_Alignas(64) _Atomic(struct node *) next;
	_Atomic int waits;
};
struct mcs {
	_Atomic(struct node *) tail;
};
static struct node nodes[CPUS];
LOCKLAB_LOCK(one_node, struct mcs, lab_no_context);
LOCKLAB_CPUS(CPUS);
#ifndef CLAIMS_NOTHING
LOCKLAB_NESTING(NESTING);
#endif

void lab_lock(void *lock, void *ctx)
{
	struct mcs *m = lock;
	struct node *mine = &nodes[lab_cpu()], *before;
	(void)ctx;
	atomic_store_explicit(&mine->next, NULL, memory_order_relaxed);
	atomic_store_explicit(&mine->waits, 1, memory_order_relaxed);
	before = atomic_exchange_explicit(&m->tail, mine, memory_order_acq_rel);
	if (!before)
		return;
	atomic_store_explicit(&before->next, mine, memory_order_release);
	while (atomic_load_explicit(&mine->waits, memory_order_acquire))
		lab_relax();
}

void lab_unlock(void *lock, void *ctx)
{
	struct mcs *m = lock;
	struct node *mine = &nodes[lab_cpu()], *expected = mine, *next;
	(void)ctx;
	next = atomic_load_explicit(&mine->next, memory_order_acquire);
	if (!next) {
		if (atomic_compare_exchange_strong_explicit(&m->tail, &expected, NULL,
							    memory_order_release,
							    memory_order_relaxed))
			return;
		while (!(next = atomic_load_explicit(&mine->next, memory_order_acquire)))
			lab_relax();
	}
	atomic_store_explicit(&next->waits, 0, memory_order_release);
}
