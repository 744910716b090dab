/* The same ticket lock: unlock is a macro that stores "unlocked" over both
 * counters, so waiters hold tickets that never come up.
 * Source: apache/nuttx pull request 19880, its second defect. Written from its
 * description; not NuttX's code. */
#include <locklab_lock.h>
#include <stdatomic.h>
#include <stdint.h>

union ticket {
	_Atomic uint32_t both;
	struct {
		_Atomic uint16_t owner, next;
	};
};
LOCKLAB_LOCK(nuttx_unlock, union ticket, lab_no_context);
LOCKLAB_FIFO();

void lab_lock(void *lock, void *ctx)
{
	union ticket *l = lock;
	(void)ctx;
	uint16_t mine = atomic_fetch_add_explicit(&l->next, 1, memory_order_acquire);
	while (atomic_load_explicit(&l->owner, memory_order_acquire) != mine)
		lab_relax();
}

void lab_unlock(void *lock, void *ctx)
{
	union ticket *l = lock;
	(void)ctx;
#ifdef FIXED
	uint16_t owner = atomic_load_explicit(&l->owner, memory_order_relaxed);
	atomic_store_explicit(&l->owner, owner + 1, memory_order_release);
#else
	atomic_store_explicit(&l->both, 0, memory_order_release);
#endif
}
