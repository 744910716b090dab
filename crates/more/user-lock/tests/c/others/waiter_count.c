/* A mutex that counts its sleepers beside the word that they sleep on, so that an unlock
 * without any needs no call. The sleeper's count is ordered before its look at the word by
 * the call itself. Expected: every promise holds.
 * -DNO_FENCE: nothing orders the unlock's store before its read of the count, so the
 * wake-up is lost: exclusion FAILS. */
#include <locklab_lock.h>
#include <stdatomic.h>
struct mutex { _Atomic unsigned held, sleepers; };
LOCKLAB_LOCK(waiter_count, struct mutex, lab_no_context);
void lab_lock(void *lock, void *ctx)
{
	struct mutex *m = lock; (void)ctx;
	while (atomic_exchange_explicit(&m->held, 1, memory_order_acquire)) {
		atomic_fetch_add(&m->sleepers, 1);
		lab_futex_wait(&m->held, 1);
		atomic_fetch_sub_explicit(&m->sleepers, 1, memory_order_relaxed);
	}
}
void lab_unlock(void *lock, void *ctx)
{
	struct mutex *m = lock; (void)ctx;
	atomic_store_explicit(&m->held, 0, memory_order_release);
#ifndef NO_FENCE
	atomic_thread_fence(memory_order_seq_cst);
#endif
	if (atomic_load_explicit(&m->sleepers, memory_order_relaxed))
		lab_futex_wake(&m->held, 1);
}
