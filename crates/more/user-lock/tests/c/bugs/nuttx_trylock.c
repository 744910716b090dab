/* The ticket lock of Apache NuttX as it was until 2026: try_lock passes the
 * address of `owner` as what a compare-and-swap of `next` expects, and a failed
 * one writes there: a lock that is held looks free.
 * Source: apache/nuttx issue 19808 and pull request 19880. Written from their
 * descriptions; not NuttX's code. */
#include <locklab_lock.h>
#include <stdatomic.h>

struct ticket {
	unsigned owner;
	_Atomic unsigned next;
};
LOCKLAB_LOCK(nuttx_trylock, struct ticket, lab_no_context);
LOCKLAB_FIFO();

void lab_lock(void *lock, void *ctx)
{
	struct ticket *l = lock;
	(void)ctx;
	unsigned mine = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
	while (__atomic_load_n(&l->owner, __ATOMIC_ACQUIRE) != mine)
		lab_relax();
}

int lab_trylock(void *lock, void *ctx)
{
	struct ticket *l = lock;
	(void)ctx;
#ifdef FIXED
	unsigned owner = __atomic_load_n(&l->owner, __ATOMIC_ACQUIRE);
	return atomic_compare_exchange_strong_explicit(&l->next, &owner, owner + 1,
						       memory_order_acquire,
						       memory_order_relaxed);
#else
	unsigned next = atomic_load_explicit(&l->next, memory_order_relaxed);
	return atomic_compare_exchange_strong_explicit(&l->next, &l->owner, next + 1,
						       memory_order_acquire,
						       memory_order_relaxed);
#endif
}

void lab_unlock(void *lock, void *ctx)
{
	struct ticket *l = lock;
	(void)ctx;
	__atomic_fetch_add(&l->owner, 1, __ATOMIC_RELEASE);
}
