/* A count from which each reader takes one and a writer all, as early Linux had.
 * -DACQ2RX: acquires by relaxed subtractions; -DREL2RX: releases by relaxed additions. */
#include "orders.h"

enum { ALL = 1 << 20 };
struct lock {
	_Atomic int left;
};
LOCKLAB_LOCK(linuxrwlock, struct lock, lab_no_context);

void lab_init(void *lock)
{
	atomic_init(&((struct lock *)lock)->left, ALL);
}

static void take(struct lock *l, int some, int least)
{
	while (atomic_fetch_sub_explicit(&l->left, some, ACQUIRE) < least) {
		atomic_fetch_add_explicit(&l->left, some, memory_order_relaxed);
		while (atomic_load_explicit(&l->left, memory_order_relaxed) < least)
			lab_relax();
	}
}

void lab_read_lock(void *lock, void *ctx)
{
	(void)ctx;
	take(lock, 1, 1);
}

void lab_read_unlock(void *lock, void *ctx)
{
	(void)ctx;
	atomic_fetch_add_explicit(&((struct lock *)lock)->left, 1, RELEASE);
}

void lab_lock(void *lock, void *ctx)
{
	(void)ctx;
	take(lock, ALL, ALL);
}

void lab_unlock(void *lock, void *ctx)
{
	(void)ctx;
	atomic_fetch_add_explicit(&((struct lock *)lock)->left, ALL, RELEASE);
}
