/* A reader's attempt is one compare-and-swap of the count that it has read: it fails if
 * another reader comes in between, though no writer holds or wants the lock. -DFIXED: it
 * tries again. A writer that has only readers before it may go on as one (-DBLOCKS: it
 * stays alone). Expected: "two readers try" FAILS; -DFIXED holds; -DFIXED -DBLOCKS:
 * "downgrade, readers enter" FAILS. */
#include <locklab_lock.h>
#include <stdatomic.h>
enum { WRITER = 1 << 16 };
struct rw { _Atomic int state; };
LOCKLAB_LOCK(silk_rw, struct rw, lab_no_context);
int lab_read_trylock(void *lock, void *ctx)
{
	struct rw *l = lock; (void)ctx;
	int seen = atomic_load_explicit(&l->state, memory_order_relaxed);
	do {
		if (seen & WRITER)
			return 0;
		if (atomic_compare_exchange_strong_explicit(&l->state, &seen, seen + 1,
							    memory_order_acquire,
							    memory_order_relaxed))
			return 1;
#ifdef FIXED
	} while (1);
#else
	} while (0);
	return 0;
#endif
}
void lab_read_lock(void *lock, void *ctx)
{
	while (!lab_read_trylock(lock, ctx))
		lab_relax();
}
void lab_read_unlock(void *lock, void *ctx)
{
	(void)ctx;
	atomic_fetch_sub_explicit(&((struct rw *)lock)->state, 1, memory_order_release);
}
void lab_lock(void *lock, void *ctx)
{
	struct rw *l = lock; int none = 0; (void)ctx;
	while (!atomic_compare_exchange_strong_explicit(&l->state, &none, WRITER,
							memory_order_acquire,
							memory_order_relaxed)) {
		none = 0;
		lab_relax();
	}
}
void lab_unlock(void *lock, void *ctx)
{
	(void)ctx;
	atomic_fetch_sub_explicit(&((struct rw *)lock)->state, WRITER, memory_order_release);
}
void lab_downgrade(void *lock, void *ctx)
{
	(void)ctx;
#ifdef BLOCKS
	(void)lock;
#else
	atomic_fetch_sub_explicit(&((struct rw *)lock)->state, WRITER - 1, memory_order_release);
#endif
}
