/* Plain data of the lock is copied and filled by memcpy and memset, for which compilers
 * have instructions of their own. Inside the lock: holds. -DOUTSIDE: the copy is made
 * before the lock is held: a data race. */
#include <locklab_lock.h>
#include <stdatomic.h>
#include <string.h>
struct spin { _Atomic int held; struct { long uses; char name[24]; } last; };
struct copy { char of[32]; };
LOCKLAB_LOCK(bulk_copy, struct spin, struct copy);
void lab_lock(void *lock, void *ctx)
{
	struct spin *s = lock; struct copy *copy = ctx;
#ifdef OUTSIDE
	memcpy(copy->of, &s->last, sizeof s->last);
#endif
	while (atomic_exchange_explicit(&s->held, 1, memory_order_acquire))
		lab_relax();
#ifndef OUTSIDE
	memcpy(copy->of, &s->last, sizeof s->last);
#endif
	memset(s->last.name, 'x', sizeof s->last.name);
	s->last.uses++;
}
void lab_unlock(void *lock, void *ctx)
{
	(void)ctx;
	atomic_store_explicit(&((struct spin *)lock)->held, 0, memory_order_release);
}
