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
	while (atomic_exchange_explicit(&l->held, 1, memory_order_acquire))
		while (atomic_load_explicit(&l->held, memory_order_relaxed))
			lab_relax();
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
