/* A ticket lock whose waiters wait in an array, by their ticket. The ticket is signed:
 * when it has become negative, so is the index. */
#include <locklab_lock.h>
#include <stdatomic.h>
#define SLOTS 8
struct lock { _Atomic int next, turn; };
LOCKLAB_LOCK(before_array, struct lock, lab_no_context);
static struct { _Alignas(64) _Atomic int changes; } slots[SLOTS];
void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock; (void)ctx;
	int mine = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
	for (;;) {
		int before = atomic_load_explicit(&slots[mine % SLOTS].changes, memory_order_acquire);
		if (atomic_load_explicit(&l->turn, memory_order_acquire) == mine)
			return;
		while (atomic_load_explicit(&slots[mine % SLOTS].changes, memory_order_acquire) == before)
			lab_relax();
	}
}
void lab_unlock(void *lock, void *ctx)
{
	struct lock *l = lock; (void)ctx;
	int next = atomic_load_explicit(&l->turn, memory_order_relaxed) + 1;
	atomic_store_explicit(&l->turn, next, memory_order_release);
	atomic_fetch_add_explicit(&slots[next % SLOTS].changes, 1, memory_order_release);
}
