/* A recursive lock that counts who wants it and sleeps on a token (Preshing's recursive
 * benaphore): the owner is forgotten after the count, so that it erases the next one.
 * Expected: FAILS; -DFIXED (the owner is forgotten first) holds. */
#include <locklab_lock.h>
#include <stdatomic.h>
struct lock { _Atomic int wants, owner, token; int depth; };
LOCKLAB_LOCK(benaphore, struct lock, lab_no_context);
LOCKLAB_RECURSIVE();
void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock; int me = lab_cpu() + 1; (void)ctx;
	int before = atomic_fetch_add_explicit(&l->wants, 1, memory_order_acquire);
	if (before && atomic_load_explicit(&l->owner, memory_order_relaxed) != me)
		while (!atomic_exchange_explicit(&l->token, 0, memory_order_acquire))
			lab_relax();
	atomic_store_explicit(&l->owner, me, memory_order_relaxed);
	l->depth++;
}
void lab_unlock(void *lock, void *ctx)
{
	struct lock *l = lock; int last = !--l->depth; (void)ctx;
#ifdef FIXED
	if (last)
		atomic_store_explicit(&l->owner, 0, memory_order_relaxed);
#endif
	int before = atomic_fetch_sub_explicit(&l->wants, 1, memory_order_release);
#ifndef FIXED
	if (last)
		atomic_store_explicit(&l->owner, 0, memory_order_relaxed);
#endif
	if (before > 1 && last)
		atomic_store_explicit(&l->token, 1, memory_order_release);
}
