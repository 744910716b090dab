/* 1 is free, and nothing sets it so. Expected: FAILS, with a sentence that says so. */
#include <locklab_lock.h>
#include <stdatomic.h>
struct spin { _Atomic int free; };
LOCKLAB_LOCK(no_init, struct spin, lab_no_context);
void lab_lock(void *lock, void *ctx)
{
	(void)ctx;
	while (!atomic_exchange_explicit(&((struct spin *)lock)->free, 0, memory_order_acquire))
		lab_relax();
}
void lab_unlock(void *lock, void *ctx)
{
	(void)ctx;
	atomic_store_explicit(&((struct spin *)lock)->free, 1, memory_order_release);
}
