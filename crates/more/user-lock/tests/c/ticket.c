/* Two halves of a word: the twin of Locklab's `ticket`. */
#include <locklab_lock.h>
#include <stdatomic.h>
#include <stdint.h>

union ticket {
	_Atomic uint32_t word;
	_Atomic uint16_t owner;
};
LOCKLAB_LOCK(ticket, union ticket, lab_no_context);
LOCKLAB_FIFO();

void lab_lock(void *lock, void *ctx)
{
	union ticket *l = lock;
	(void)ctx;
	uint32_t word = atomic_fetch_add_explicit(&l->word, 1 << 16, memory_order_acquire);
	uint16_t mine = word >> 16;
	if ((uint16_t)word == mine)
		return;
	while ((uint16_t)atomic_load_explicit(&l->word, memory_order_acquire) != mine)
		lab_relax();
}

int lab_trylock(void *lock, void *ctx)
{
	union ticket *l = lock;
	(void)ctx;
	uint32_t word = atomic_load_explicit(&l->word, memory_order_relaxed);
	return (uint16_t)(word >> 16) == (uint16_t)word &&
	       atomic_compare_exchange_strong_explicit(&l->word, &word, word + (1 << 16),
						       memory_order_acquire,
						       memory_order_relaxed);
}

void lab_unlock(void *lock, void *ctx)
{
	union ticket *l = lock;
	(void)ctx;
	uint16_t owner = atomic_load_explicit(&l->word, memory_order_relaxed);
	atomic_store_explicit(&l->owner, owner + 1, memory_order_release);
}
