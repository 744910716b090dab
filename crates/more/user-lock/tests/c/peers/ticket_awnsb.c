/* Tickets, and an array where each waiter but the next leaves its node, in which it is told
 * that it is the next (P. Ramalhete and A. Correia's "array of waiting nodes"). A thread has
 * one node, so the lock is not for interrupts. -DACQ2RX: waits by relaxed loads. */
#include "orders.h"

#ifdef LOCKLAB_CHECKER
#define WAITERS 4
#else
#define WAITERS 4096
#endif
struct node {
	_Alignas(64) _Atomic int next;
};
struct lock {
	_Atomic unsigned ingress, egress;
	_Atomic(struct node *) waiting[WAITERS];
};
LOCKLAB_LOCK(ticket_awnsb, struct lock, struct node);
LOCKLAB_FIFO();
LOCKLAB_NO_INTERRUPTS();

void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock;
	struct node *mine = ctx;
	unsigned ticket = atomic_fetch_add_explicit(&l->ingress, 1, memory_order_relaxed);
	if (ticket - atomic_load_explicit(&l->egress, ACQUIRE) > 1) {
		_Atomic(struct node *) *place = &l->waiting[ticket % WAITERS];
		atomic_store_explicit(&mine->next, 0, memory_order_relaxed);
		atomic_store_explicit(place, mine, memory_order_release);
		/* Who has not seen the node has let this ticket be the next already. */
		atomic_thread_fence(memory_order_seq_cst);
		if (ticket - atomic_load_explicit(&l->egress, memory_order_relaxed) > 1)
			while (!atomic_load_explicit(&mine->next, ACQUIRE))
				lab_relax();
	}
	while (atomic_load_explicit(&l->egress, ACQUIRE) != ticket)
		lab_relax();
	atomic_store_explicit(&l->waiting[ticket % WAITERS], NULL, memory_order_relaxed);
}

void lab_unlock(void *lock, void *ctx)
{
	struct lock *l = lock;
	unsigned ticket = atomic_load_explicit(&l->egress, memory_order_relaxed) + 1;
	struct node *next;
	(void)ctx;
	atomic_store_explicit(&l->egress, ticket, RELEASE);
	atomic_thread_fence(memory_order_seq_cst);
	next = atomic_load_explicit(&l->waiting[(ticket + 1) % WAITERS], memory_order_acquire);
	if (next)
		atomic_store_explicit(&next->next, 1, memory_order_release);
}
