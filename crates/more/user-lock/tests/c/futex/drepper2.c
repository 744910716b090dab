/* The second mutex of U. Drepper, "Futexes Are Tricky" (2004), from its description:
 * free, held, or held and perhaps awaited. Who has waited takes it as awaited.
 * -DNO_CHECK: who waits does not say so first. */
#include <locklab_lock.h>
#include <stdatomic.h>

enum { FREE, HELD, AWAITED };
struct mutex {
	_Atomic int state;
};
LOCKLAB_LOCK(drepper2, struct mutex, lab_no_context);

static int swap_if(struct mutex *m, int old, int new)
{
	atomic_compare_exchange_strong_explicit(&m->state, &old, new, memory_order_acquire,
						memory_order_relaxed);
	return old;
}

void lab_lock(void *lock, void *ctx)
{
	struct mutex *m = lock;
	int state = swap_if(m, FREE, HELD);
	(void)ctx;
	if (state == FREE)
		return;
	do {
#ifdef NO_CHECK
		lab_futex_wait(&m->state, state);
#else
		if (state == AWAITED || swap_if(m, HELD, AWAITED) != FREE)
			lab_futex_wait(&m->state, AWAITED);
#endif
	} while ((state = swap_if(m, FREE, AWAITED)) != FREE);
}

int lab_trylock(void *lock, void *ctx)
{
	(void)ctx;
	return swap_if(lock, FREE, HELD) == FREE;
}

void lab_unlock(void *lock, void *ctx)
{
	struct mutex *m = lock;
	(void)ctx;
	if (atomic_fetch_sub_explicit(&m->state, 1, memory_order_release) != HELD) {
		atomic_store_explicit(&m->state, FREE, memory_order_release);
		lab_futex_wake(&m->state, 1);
	}
}
