/* Tickets, and an array in which all but the next wait (D. Dice and A. Kogan, "TWA -
 * Ticket Locks Augmented with a Waiting Array", Euro-Par 2019). */
#include "orders.h"

#ifdef LOCKLAB_CHECKER
#define SLOTS 4
#else
#define SLOTS 4096
#endif
struct lock {
	_Atomic unsigned next, serving;
	_Atomic unsigned slots[SLOTS];
};
LOCKLAB_LOCK(twalock, struct lock, lab_no_context);
LOCKLAB_FIFO();

void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock;
	unsigned mine = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
	(void)ctx;
	if (mine - atomic_load_explicit(&l->serving, ACQUIRE) > 1) {
		_Atomic unsigned *slot = &l->slots[mine % SLOTS];
		for (;;) {
			unsigned seen = atomic_load_explicit(slot, memory_order_acquire);
			if (mine - atomic_load_explicit(&l->serving, memory_order_relaxed) <= 1)
				break;
			while (atomic_load_explicit(slot, memory_order_relaxed) == seen)
				lab_relax();
		}
	}
	while (atomic_load_explicit(&l->serving, ACQUIRE) != mine)
		lab_relax();
}

void lab_unlock(void *lock, void *ctx)
{
	struct lock *l = lock;
	unsigned now = atomic_load_explicit(&l->serving, memory_order_relaxed) + 1;
	(void)ctx;
	atomic_store_explicit(&l->serving, now, RELEASE);
	atomic_fetch_add_explicit(&l->slots[(now + 1) % SLOTS], 1, memory_order_release);
}
