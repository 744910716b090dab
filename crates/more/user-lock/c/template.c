/* A ticket lock to start from. Commands to try:
 *
 *   locklab matrix FILE qspinlock               on this machine
 *   locklab matrix FILE qspinlock --on xeon-8380-2s   on a simulated one
 *   locklab verify FILE --mutants               in every interleaving
 */
#include <locklab_lock.h>
#include <stdatomic.h>

/* The lock. Zero is free; define lab_init(void *lock) if yours is not. */
struct ticket {
	_Atomic unsigned next;    /* the ticket that the next CPU draws */
	_Atomic unsigned serving; /* the ticket of the holder */
};

/* Memory that a thread passes to each acquisition: here none. A queue lock has
 * its node here. */
LOCKLAB_LOCK(my_ticket, struct ticket, lab_no_context);

/* It serves in the order of arrival, and `verify` is to check that. Remove the
 * line if yours does not. */
LOCKLAB_FIFO();

void lab_lock(void *lock, void *ctx)
{
	struct ticket *l = lock;
	(void)ctx;
	unsigned mine = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
	/* Acquire: pairs with the release in lab_unlock. */
	while (atomic_load_explicit(&l->serving, memory_order_acquire) != mine)
		lab_relax(); /* one pause; the simulator sleeps here */
}

/* Optional: 1 if the lock was acquired without waiting. */
int lab_trylock(void *lock, void *ctx)
{
	struct ticket *l = lock;
	(void)ctx;
	/* Acquire: pairs with the release in lab_unlock. */
	unsigned serving = atomic_load_explicit(&l->serving, memory_order_acquire);
	return atomic_compare_exchange_strong_explicit(&l->next, &serving, serving + 1,
						       memory_order_relaxed,
						       memory_order_relaxed);
}

void lab_unlock(void *lock, void *ctx)
{
	struct ticket *l = lock;
	(void)ctx;
	unsigned mine = atomic_load_explicit(&l->serving, memory_order_relaxed);
	/* Release: pairs with the acquire in lab_lock. */
	atomic_store_explicit(&l->serving, mine + 1, memory_order_release);
}
