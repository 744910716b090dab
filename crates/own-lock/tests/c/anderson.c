/* Anderson 1990, an array of flags: the twin of `anderson`. */
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
enum { GO = 1, WAIT = 2 };

struct slot {
	alignas(64) _Atomic uint32_t flag;
};
struct anderson {
	alignas(64) _Atomic size_t next;
	struct slot slots[SLOTS];
};
struct place {
	size_t slot;
};
LOCKLAB_LOCK(anderson, struct anderson, struct place);
LOCKLAB_FIFO();
LOCKLAB_CPUS(SLOTS);

static int may_go(uint32_t flag, size_t slot)
{
	return flag == GO || (flag == 0 && slot == 0);
}

void lab_lock(void *lock, void *ctx)
{
	struct anderson *l = lock;
	struct place *place = ctx;
	size_t slot = atomic_fetch_add_explicit(&l->next, 1, memory_order_acq_rel) % SLOTS;
	place->slot = slot;
	while (!may_go(atomic_load_explicit(&l->slots[slot].flag, memory_order_acquire), slot))
		lab_relax();
}

int lab_trylock(void *lock, void *ctx)
{
	struct anderson *l = lock;
	struct place *place = ctx;
	size_t next = atomic_load_explicit(&l->next, memory_order_relaxed);
	size_t slot = next % SLOTS;
	if (!may_go(atomic_load_explicit(&l->slots[slot].flag, memory_order_relaxed), slot) ||
	    !atomic_compare_exchange_strong_explicit(&l->next, &next, next + 1,
						     memory_order_acq_rel,
						     memory_order_relaxed))
		return 0;
	place->slot = slot;
	while (!may_go(atomic_load_explicit(&l->slots[slot].flag, memory_order_acquire), slot))
		lab_relax();
	return 1;
}

void lab_unlock(void *lock, void *ctx)
{
	struct anderson *l = lock;
	struct place *place = ctx;
	size_t slot = place->slot % SLOTS;
	atomic_store_explicit(&l->slots[slot].flag, WAIT, memory_order_relaxed);
	atomic_store_explicit(&l->slots[(slot + 1) % SLOTS].flag, GO, memory_order_release);
}
