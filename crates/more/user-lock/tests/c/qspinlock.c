/* Four bytes and a queue of per-CPU nodes: the twin of Locklab's `qspinlock`,
 * after the design of Long and Zijlstra (LWN, March 2014). */
#include <locklab_lock.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#ifdef LOCKLAB_CHECKER
enum { PENDING_READS = 1 };
#else
enum { PENDING_READS = 64 };
#endif
enum { LOCKED = 1, LOCKED_MASK = 0xff, PENDING = 1 << 8, NESTING = 4 };
#define CPUS 512

union qspinlock {
	_Atomic uint32_t word;
	_Atomic uint8_t locked;
	_Atomic uint16_t low;
	struct {
		uint16_t unused;
		_Atomic uint16_t tail;
	};
};
struct node {
	_Atomic(struct node *) next;
	_Atomic uint32_t granted, aux;
};
struct nodes {
	alignas(64) struct node level[NESTING];
};
LOCKLAB_LOCK(qspinlock, union qspinlock, lab_no_context);
LOCKLAB_FIFO();
LOCKLAB_CPUS(CPUS);

static struct nodes nodes[CPUS];

static int take_if_free(union qspinlock *l, uint32_t *word)
{
	*word = 0;
	return atomic_compare_exchange_strong_explicit(&l->word, word, LOCKED,
						       memory_order_acquire,
						       memory_order_relaxed);
}

static int wait_as_pending(union qspinlock *l)
{
	uint32_t old = atomic_fetch_or_explicit(&l->word, PENDING, memory_order_acquire);
	if (old & ~(uint32_t)LOCKED_MASK) {
		if (!(old & PENDING))
			atomic_fetch_and_explicit(&l->word, ~(uint32_t)PENDING,
						  memory_order_relaxed);
		return 0;
	}
	if (old & LOCKED_MASK)
		while (atomic_load_explicit(&l->word, memory_order_acquire) & LOCKED_MASK)
			lab_relax();
	atomic_store_explicit(&l->low, LOCKED, memory_order_relaxed);
	return 1;
}

static void queue(union qspinlock *l, uint16_t tail, struct node *node)
{
	uint16_t before = atomic_exchange_explicit(&l->tail, tail, memory_order_acq_rel);
	if (before) {
		struct node *other = &nodes[(before >> 2) - 1].level[before & (NESTING - 1)];
		atomic_store_explicit(&other->next, node, memory_order_release);
		while (!atomic_load_explicit(&node->granted, memory_order_acquire))
			lab_relax();
	}
	uint32_t word;
	while ((word = atomic_load_explicit(&l->word, memory_order_acquire)) &
	       (LOCKED_MASK | PENDING))
		lab_relax();
	/* Whoever has set pending meanwhile has seen the queue, and takes the bit
	 * back; it may have no node to queue with. */
	while (word >> 16 == tail)
		if (atomic_compare_exchange_strong_explicit(&l->word, &word, LOCKED | (word & PENDING),
							    memory_order_relaxed,
							    memory_order_relaxed))
			return;
	atomic_store_explicit(&l->locked, LOCKED, memory_order_relaxed);
	struct node *next;
	while (!(next = atomic_load_explicit(&node->next, memory_order_acquire)))
		lab_relax();
	atomic_store_explicit(&next->granted, 1, memory_order_release);
}

static __attribute__((noinline)) void wait(union qspinlock *l, uint32_t word)
{
	if (word == PENDING)
		for (int reads = 0; reads < PENDING_READS; reads++) {
			word = atomic_load_explicit(&l->word, memory_order_relaxed);
			if (word != PENDING)
				break;
			lab_relax();
		}
	if (!(word & ~(uint32_t)LOCKED_MASK) && wait_as_pending(l))
		return;
	unsigned cpu = lab_cpu();
	_Atomic uint32_t *depth = &nodes[cpu].level[0].aux;
	uint32_t level = atomic_load_explicit(depth, memory_order_relaxed);
	if (level >= NESTING) {
		while (!take_if_free(l, &word))
			lab_relax();
		return;
	}
	atomic_store_explicit(depth, level + 1, memory_order_relaxed);
	struct node *node = &nodes[cpu].level[level];
	atomic_store_explicit(&node->next, 0, memory_order_relaxed);
	atomic_store_explicit(&node->granted, 0, memory_order_relaxed);
	if (atomic_load_explicit(&l->word, memory_order_relaxed) || !take_if_free(l, &word))
		queue(l, (uint16_t)((cpu + 1) << 2 | level), node);
	atomic_store_explicit(depth, level, memory_order_relaxed);
}

void lab_lock(void *lock, void *ctx)
{
	union qspinlock *l = lock;
	uint32_t word;
	(void)ctx;
	if (!take_if_free(l, &word))
		wait(l, word);
}

int lab_trylock(void *lock, void *ctx)
{
	union qspinlock *l = lock;
	uint32_t word;
	(void)ctx;
	return !atomic_load_explicit(&l->word, memory_order_relaxed) && take_if_free(l, &word);
}

void lab_unlock(void *lock, void *ctx)
{
	union qspinlock *l = lock;
	(void)ctx;
	atomic_store_explicit(&l->locked, 0, memory_order_release);
}
