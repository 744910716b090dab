/* The third mutex of U. Drepper, "Futexes Are Tricky" (2004), from its description: as
 * the second, by swaps. Each flag loses a wake-up.
 * -DEARLY: wakes before it releases.
 * -DFORGETS: who was woken takes it as not awaited, and others sleep on.
 * -DNOBODY: wakes for another word. */
#include <locklab_lock.h>
#include <stdatomic.h>

enum { FREE, HELD, AWAITED };
struct mutex {
	_Atomic int state, other;
};
LOCKLAB_LOCK(drepper3, struct mutex, lab_no_context);

#ifdef FORGETS
#define AFTERWARDS HELD
#else
#define AFTERWARDS AWAITED
#endif

void lab_lock(void *lock, void *ctx)
{
	struct mutex *m = lock;
	int state = FREE;
	(void)ctx;
	if (atomic_compare_exchange_strong_explicit(&m->state, &state, HELD, memory_order_acquire,
						    memory_order_relaxed))
		return;
	if (state != AWAITED)
		state = atomic_exchange_explicit(&m->state, AWAITED, memory_order_acquire);
	while (state != FREE) {
		lab_futex_wait(&m->state, AWAITED);
		state = atomic_exchange_explicit(&m->state, AFTERWARDS, memory_order_acquire);
	}
}

void lab_unlock(void *lock, void *ctx)
{
	struct mutex *m = lock;
	(void)ctx;
#if defined EARLY
	lab_futex_wake(&m->state, 1);
	atomic_store_explicit(&m->state, FREE, memory_order_release);
#else
	if (atomic_exchange_explicit(&m->state, FREE, memory_order_release) == AWAITED) {
#ifdef NOBODY
		lab_futex_wake(&m->other, 1);
#else
		lab_futex_wake(&m->state, 1);
#endif
	}
#endif
}
