/* The writers of the RwLock of Rust's crate `spin` as they were until 0.5.2:
 * the guard of a writer lets go with a relaxed store, so what it wrote may
 * become visible after the next writer has entered.
 * Source: RUSTSEC-2019-0013 (CVE-2019-16137). Written from the advisory; not
 * spin's code. */
#include <locklab_lock.h>
#include <stdatomic.h>

enum { WRITER = 1 };
struct rwlock {
	_Atomic unsigned long state;
};
LOCKLAB_LOCK(spin_rs_rwlock, struct rwlock, lab_no_context);

void lab_lock(void *lock, void *ctx)
{
	struct rwlock *l = lock;
	(void)ctx;
	for (;;) {
		unsigned long free = 0;
		if (atomic_compare_exchange_strong_explicit(&l->state, &free, WRITER,
							    memory_order_acquire,
							    memory_order_relaxed))
			return;
		lab_relax();
	}
}

void lab_unlock(void *lock, void *ctx)
{
	struct rwlock *l = lock;
	(void)ctx;
#ifdef FIXED
	atomic_store_explicit(&l->state, 0, memory_order_release);
#else
	atomic_store_explicit(&l->state, 0, memory_order_relaxed);
#endif
}
