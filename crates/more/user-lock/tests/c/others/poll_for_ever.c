/* A plain flag under a guard that is polled, and that nobody clears. Expected: "alone"
 * FAILS, a deadlock, though each round of the wait writes. */
#include <locklab_lock.h>
#include <stdatomic.h>
struct lock { _Atomic int guard; int held; };
LOCKLAB_LOCK(poll_for_ever, struct lock, lab_no_context);
static void guard(struct lock *l)
{
	while (atomic_exchange_explicit(&l->guard, 1, memory_order_acquire))
		lab_relax();
}
static void unguard(struct lock *l)
{
	atomic_store_explicit(&l->guard, 0, memory_order_release);
}
void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock; (void)ctx;
	for (;;) {
		guard(l);
		if (!l->held)
			break;
		unguard(l);
		lab_relax();
	}
	l->held = 1;
	unguard(l);
}
void lab_unlock(void *lock, void *ctx) { (void)ctx; guard(lock); unguard(lock); }
