/* The spin lock of FEX-Emu as it was until 2024: after a failed
 * compare-and-swap, what it expects is not set to 0 again, so a later one
 * "succeeds" on a lock that is held.
 * Source: FEX-Emu/FEX pull request 3403 ("SpinLockWait: Fixes unexpected lock
 * success"). Written from its description; not FEX's code. */
#include <locklab_lock.h>
#include <stdatomic.h>

struct spin {
	_Atomic unsigned held;
};
LOCKLAB_LOCK(fex_spinlock, struct spin, lab_no_context);

void lab_lock(void *lock, void *ctx)
{
	struct spin *l = lock;
	unsigned expected = 0;
	(void)ctx;
	while (!atomic_compare_exchange_strong_explicit(&l->held, &expected, 1,
							memory_order_acquire,
							memory_order_relaxed)) {
		while (atomic_load_explicit(&l->held, memory_order_relaxed))
			lab_relax();
#ifdef FIXED
		expected = 0;
#endif
	}
}

int lab_trylock(void *lock, void *ctx)
{
	struct spin *l = lock;
	unsigned expected = 0;
	(void)ctx;
	return atomic_compare_exchange_strong_explicit(&l->held, &expected, 1,
						       memory_order_acquire,
						       memory_order_relaxed);
}

void lab_unlock(void *lock, void *ctx)
{
	struct spin *l = lock;
	(void)ctx;
	atomic_store_explicit(&l->held, 0, memory_order_release);
}
