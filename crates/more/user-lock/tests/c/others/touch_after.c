/* A release that looks at the lock once more after it gave it away: a thread that
 * acquires it then and frees it (as the last user may) leaves a dangling access.
 * -DENDS: it claims that it may be freed so. -DFIXED: it uses the address only. */
#include <locklab_lock.h>
#include <stdatomic.h>
struct mutex { _Atomic int held, waiters; };
LOCKLAB_LOCK(touch_after, struct mutex, lab_no_context);
#ifdef ENDS
LOCKLAB_ENDS_BY_UNLOCK();
#endif

void lab_lock(void *lock, void *ctx)
{
	struct mutex *m = lock;
	(void)ctx;
	while (atomic_exchange_explicit(&m->held, 1, memory_order_acq_rel) & 1) {
		atomic_fetch_add_explicit(&m->waiters, 1, memory_order_seq_cst);
		lab_futex_wait(&m->held, 1);
		atomic_fetch_sub_explicit(&m->waiters, 1, memory_order_seq_cst);
	}
}
void lab_unlock(void *lock, void *ctx)
{
	struct mutex *m = lock;
	(void)ctx;
#ifdef FIXED
	atomic_exchange_explicit(&m->held, 0, memory_order_acq_rel);
	lab_futex_wake(&m->held, 1); /* uses the address only */
#else
	atomic_exchange_explicit(&m->held, 0, memory_order_acq_rel);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&m->waiters, memory_order_relaxed))
		lab_futex_wake(&m->held, 1);
#endif
}
