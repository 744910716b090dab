/* Test-and-test-and-set: the twin of Locklab's `ttas`. */
#include <locklab_lock.h>
#include <stdatomic.h>

struct ttas {
	_Atomic unsigned char held;
};
LOCKLAB_LOCK(ttas, struct ttas, lab_no_context);

void lab_lock(void *lock, void *ctx)
{
	struct ttas *l = lock;
	(void)ctx;
	if (!atomic_exchange_explicit(&l->held, 1, memory_order_acquire))
		return;
	unsigned char none;
	do {
		lab_relax();
		while (atomic_load_explicit(&l->held, memory_order_relaxed))
			lab_relax();
		none = 0;
	} while (!atomic_compare_exchange_strong_explicit(
		&l->held, &none, 1, memory_order_acquire, memory_order_relaxed));
}

int lab_trylock(void *lock, void *ctx)
{
	struct ttas *l = lock;
	(void)ctx;
	return !atomic_load_explicit(&l->held, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&l->held, 1, memory_order_acquire);
}

void lab_unlock(void *lock, void *ctx)
{
	struct ttas *l = lock;
	(void)ctx;
	atomic_store_explicit(&l->held, 0, memory_order_release);
}
