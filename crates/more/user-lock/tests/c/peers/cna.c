/* A queue whose holder prefers waiters of its own NUMA node, and keeps the others in a second
 * queue (D. Dice and A. Kogan, "Compact NUMA-aware Locks", EuroSys 2019). Each of the suite's
 * weakened orderings has a flag. */
#include "orders.h"
#include <stdint.h>

#ifndef LINK
#define LINK memory_order_release
#endif
#ifndef WAIT
#define WAIT memory_order_acquire
#endif
#ifndef NEXT
#define NEXT memory_order_acquire
#endif
#ifndef FOUND1
#define FOUND1 memory_order_acquire
#endif
#ifndef FOUND2
#define FOUND2 memory_order_acquire
#endif
#ifndef GRANT1 /* to the others, when the main queue is empty */
#define GRANT1 memory_order_release
#endif
#ifndef GRANT2 /* to one of the same NUMA node */
#define GRANT2 memory_order_release
#endif
#ifndef GRANT3 /* to the others, when there is none */
#define GRANT3 memory_order_release
#endif
#ifndef GRANT4 /* to the next, where there are no others */
#define GRANT4 memory_order_release
#endif

struct node {
	/* 0: waits; 1: has the lock; else the first of the second queue, too. */
	_Alignas(64) _Atomic uintptr_t granted;
	_Atomic int numa_node;
	_Atomic(struct node *) last; /* of the second queue, in its first */
	_Atomic(struct node *) next;
};
struct lock {
	_Atomic(struct node *) tail;
};
LOCKLAB_LOCK(cna, struct lock, struct node);

#define GET(FIELD) atomic_load_explicit(&(FIELD), memory_order_relaxed)
#define SET(FIELD, VALUE) atomic_store_explicit(&(FIELD), VALUE, memory_order_relaxed)

void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock;
	struct node *mine = ctx, *before;
	SET(mine->next, NULL);
	SET(mine->numa_node, -1);
	SET(mine->granted, 0);
	before = atomic_exchange_explicit(&l->tail, mine, memory_order_acq_rel);
	if (!before) {
		SET(mine->granted, 1);
		return;
	}
	SET(mine->numa_node, (int)lab_node());
	atomic_store_explicit(&before->next, mine, LINK);
	while (!atomic_load_explicit(&mine->granted, WAIT))
		lab_relax();
}

/* The first in the main queue of this NUMA node; those before it go to the second. */
static struct node *of_this_node(struct node *mine)
{
	struct node *first = atomic_load_explicit(&mine->next, FOUND1), *last = first, *at;
	int here = GET(mine->numa_node);
	if (here == -1)
		here = (int)lab_node();
	if (GET(first->numa_node) == here)
		return first;
	for (at = atomic_load_explicit(&first->next, FOUND2); at;
	     at = atomic_load_explicit(&at->next, FOUND2)) {
		if (GET(at->numa_node) == here) {
			struct node *second = (struct node *)GET(mine->granted);
			if ((uintptr_t)second > 1)
				SET(GET(second->last)->next, first);
			else
				SET(mine->granted, (uintptr_t)(second = first));
			SET(last->next, NULL);
			SET(second->last, last);
			return at;
		}
		last = at;
	}
	return NULL;
}

void lab_unlock(void *lock, void *ctx)
{
	struct lock *l = lock;
	struct node *mine = ctx, *last = mine, *next;
	uintptr_t second = GET(mine->granted);
	if (!atomic_load_explicit(&mine->next, NEXT)) {
		struct node *others = second > 1 ? (struct node *)second : NULL;
		struct node *tail = others ? GET(others->last) : NULL;
		if (atomic_compare_exchange_strong_explicit(&l->tail, &last, tail,
							    memory_order_acq_rel,
							    memory_order_relaxed)) {
			if (others)
				atomic_store_explicit(&others->granted, 1, GRANT1);
			return;
		}
		while (!atomic_load_explicit(&mine->next, NEXT))
			lab_relax();
	}
	next = of_this_node(mine);
	second = GET(mine->granted);
	if (next) {
		atomic_store_explicit(&next->granted, second, GRANT2);
	} else if (second > 1) {
		next = (struct node *)second;
		SET(GET(next->last)->next, GET(mine->next));
		atomic_store_explicit(&next->granted, 1, GRANT3);
	} else {
		atomic_store_explicit(&GET(mine->next)->granted, 1, GRANT4);
	}
}
