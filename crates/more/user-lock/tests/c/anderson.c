/* Anderson 1990, an array of turns: the twin of `anderson`. */
#include <locklab_lock.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef SLOTS
#ifdef LOCKLAB_CHECKER
#define SLOTS 4
#else
#define SLOTS 512
#endif
#endif

struct slot {
	alignas(64) _Atomic size_t called;
};
struct anderson {
	alignas(64) _Atomic size_t next;
	struct slot slots[SLOTS];
};
struct place {
	size_t turn;
};
LOCKLAB_LOCK(anderson, struct anderson, struct place);
LOCKLAB_FIFO();

void lab_lock(void *lock, void *ctx)
{
	struct anderson *l = lock;
	struct place *place = ctx;
	size_t turn = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
	place->turn = turn;
	while (atomic_load_explicit(&l->slots[turn % SLOTS].called, memory_order_acquire) != turn)
		lab_relax();
}

int lab_trylock(void *lock, void *ctx)
{
	struct anderson *l = lock;
	struct place *place = ctx;
	size_t turn = atomic_load_explicit(&l->next, memory_order_relaxed);
	size_t next = turn;
	if (atomic_load_explicit(&l->slots[turn % SLOTS].called, memory_order_relaxed) != turn ||
	    !atomic_compare_exchange_strong_explicit(&l->next, &next, turn + 1,
						     memory_order_relaxed,
						     memory_order_relaxed))
		return 0;
	place->turn = turn;
	while (atomic_load_explicit(&l->slots[turn % SLOTS].called, memory_order_acquire) != turn)
		lab_relax();
	return 1;
}

void lab_unlock(void *lock, void *ctx)
{
	struct anderson *l = lock;
	struct place *place = ctx;
	size_t next = place->turn + 1;
	atomic_store_explicit(&l->slots[next % SLOTS].called, next, memory_order_release);
}
