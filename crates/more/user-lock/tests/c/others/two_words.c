/* A flag and a count in two words: a round reads both, and the flag again by its
 * compare-and-swap. Correct. Expected: every promise holds. -DUNDO: announces itself
 * in a third word before it looks, and takes that back. */
#include <locklab_lock.h>
#include <stdatomic.h>
struct two { _Atomic int flag, count, announced; };
LOCKLAB_LOCK(two_words, struct two, lab_no_context);
__attribute__((noinline)) static int once(struct two *l)
{
	int free = 0;
#ifdef UNDO
	atomic_fetch_add_explicit(&l->announced, 1, memory_order_relaxed);
#endif
	if (atomic_load_explicit(&l->count, memory_order_relaxed) == 0 &&
	    atomic_load_explicit(&l->flag, memory_order_relaxed) == 0 &&
	    atomic_compare_exchange_strong_explicit(&l->flag, &free, 1, memory_order_acquire,
						    memory_order_relaxed))
		return 1;
#ifdef UNDO
	atomic_fetch_sub_explicit(&l->announced, 1, memory_order_relaxed);
#endif
	return 0;
}
void lab_lock(void *lock, void *ctx)
{
	struct two *l = lock; (void)ctx;
	while (!once(l))
		lab_relax();
	atomic_store_explicit(&l->count, 1, memory_order_relaxed);
}
void lab_unlock(void *lock, void *ctx)
{
	struct two *l = lock; (void)ctx;
#ifdef UNDO
	atomic_fetch_sub_explicit(&l->announced, 1, memory_order_relaxed);
#endif
	atomic_store_explicit(&l->count, 0, memory_order_relaxed);
	atomic_store_explicit(&l->flag, 0, memory_order_release);
}
