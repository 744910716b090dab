/* The queue of Linux's qspinlock as it was until 4.16: the new tail and the
 * link to the predecessor are published without order after the node's own
 * fields, so the grant may come before `locked = 0` and be lost.
 * Source: the description of Linux commit 95bcade33a8a ("Ensure node is
 * initialised before updating prev->next"), by W. Deacon. Written from it; not
 * Linux's code. */
#include <locklab_lock.h>
#include <stdatomic.h>

#ifdef FIXED
#define PUBLISH memory_order_release
#else
#define PUBLISH memory_order_relaxed
#endif

struct node {
	_Atomic(struct node *) next;
	_Atomic int granted;
};
struct lock {
	_Atomic unsigned char held;
	_Atomic unsigned short tail;
};
LOCKLAB_LOCK(linux_qspinlock, struct lock, lab_no_context);
LOCKLAB_CPUS(8);

static struct node nodes[8];

static int take(struct lock *l)
{
	return !atomic_exchange_explicit(&l->held, 1, memory_order_acquire);
}

void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock;
	(void)ctx;
	unsigned cpu = lab_cpu();
	struct node *me = &nodes[cpu], *next;
	unsigned short tail = cpu + 1, last = tail, before;
	if (!atomic_load_explicit(&l->tail, memory_order_relaxed) && take(l))
		return;
	atomic_store_explicit(&me->granted, 0, memory_order_relaxed);
	atomic_store_explicit(&me->next, NULL, memory_order_relaxed);
	/* Acquire: what the address dependency gives that a kernel relies on. */
#ifdef FIXED
	before = atomic_exchange_explicit(&l->tail, tail, memory_order_acq_rel);
#else
	before = atomic_exchange_explicit(&l->tail, tail, memory_order_acquire);
#endif
	if (before) {
		atomic_store_explicit(&nodes[before - 1].next, me, PUBLISH);
		while (!atomic_load_explicit(&me->granted, memory_order_acquire))
			lab_relax();
	}
	while (!take(l))
		lab_relax();
	if (atomic_compare_exchange_strong_explicit(&l->tail, &last, 0, memory_order_relaxed,
						    memory_order_relaxed))
		return;
	while (!(next = atomic_load_explicit(&me->next, memory_order_acquire)))
		lab_relax();
	atomic_store_explicit(&next->granted, 1, memory_order_release);
}

void lab_unlock(void *lock, void *ctx)
{
	struct lock *l = lock;
	(void)ctx;
	atomic_store_explicit(&l->held, 0, memory_order_release);
}
