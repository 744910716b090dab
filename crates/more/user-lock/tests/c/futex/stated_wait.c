/* A mutex of four bytes that sleeps, and is handed over after a stated wait. With
 * -DNO_KICK the release does not wake the head of the queue; with -DNO_WAKE the head
 * does not wake the next.
 *
 * Who finds it free takes it, past the queue, as long as the head of the queue has not
 * waited AWAKE ns; then the head closes it, and nobody else enters. So an owner keeps
 * the lock in its cache for a while, and every waiter has its turn, in order of arrival.
 * Waiters sleep: those behind the head after SPIN ns, the head SPIN ns after it closed
 * the lock. One that was woken lets others by for WOKEN ns, many times what waking it
 * took. The head reads the word rarely: it measures how long a read takes, and
 * waits POLITE times as long before the next, so that it takes a small share of the
 * owner's time on any machine. */
#include <locklab_lock.h>
#include <stdatomic.h>
#include <stdint.h>

#ifdef LOCKLAB_NATIVE
#include <time.h>
#endif

#ifdef LOCKLAB_CHECKER
enum { CPUS = 4, AWAKE = 1, SPIN = 1, WOKEN = 1, POLITE = 1, READ = 1, PAUSE = 1 };
#else
#ifndef POLITE
#define POLITE 8
#endif
#ifndef AWAKE
#define AWAKE 25000
#endif
#ifndef SPIN
#define SPIN 50000
#endif
#ifndef WOKEN
#define WOKEN 100000
#endif
/* Where there is no clock, a pause and a read count as so many ns. */
enum { CPUS = 510, READ = 100, PAUSE = 50 };
#endif

enum { HELD = 1, HEAD_SLEEPS = 3, HELD_MASK = 0xff, CLOSED = 0x100, TAIL = 16 };
enum { WAITS, HEAD, SLEEPS };

struct node {
	_Alignas(64) _Atomic(struct node *) next;
	_Atomic uint32_t state;
};
struct lock {
	_Atomic uint32_t word; /* held: bits 0 to 7; closed: 8; tail of the queue: 16 on */
};
LOCKLAB_LOCK(stated_wait, struct lock, lab_no_context);
LOCKLAB_CPUS(CPUS);
LOCKLAB_NO_INTERRUPTS();

static struct node nodes[CPUS];

/* Nanoseconds, of which `passed` were counted. */
static uint64_t now(uint64_t passed)
{
#ifdef LOCKLAB_NATIVE
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
#else
	return passed;
#endif
}

static int swapped(_Atomic uint32_t *word, uint32_t *old, uint32_t new, memory_order order)
{
	return atomic_compare_exchange_strong_explicit(word, old, new, order,
						       memory_order_relaxed);
}

/* Waits to be the head of the queue; returns whether it slept. */
static int wait_to_be_head(struct node *node, uint64_t began)
{
	uint64_t passed = 0;
	while (atomic_load_explicit(&node->state, memory_order_acquire) != HEAD) {
		uint32_t waits = WAITS;
		if (now(passed) - began < SPIN) {
			lab_relax();
			passed += PAUSE;
		} else if (swapped(&node->state, &waits, SLEEPS, memory_order_relaxed)) {
			do
				lab_futex_wait(&node->state, SLEEPS);
			while (atomic_load_explicit(&node->state, memory_order_acquire) != HEAD);
			return 1;
		}
	}
	return 0;
}

/* Takes the lock as the head of the queue, if it is free; makes the next one the head. */
static int take(struct lock *l, struct node *node, uint32_t tail, uint32_t *word)
{
	while (!(*word & HELD_MASK)) {
		int last = *word >> TAIL == tail;
		uint32_t held = last ? HELD : (*word & ~(uint32_t)CLOSED) | HELD;
		struct node *next;
		if (!swapped(&l->word, word, held, memory_order_acquire))
			continue;
		if (last)
			return 1;
		while (!(next = atomic_load_explicit(&node->next, memory_order_acquire)))
			lab_relax();
		if (atomic_exchange_explicit(&next->state, HEAD, memory_order_release) == SLEEPS) {
#ifndef NO_WAKE
			lab_futex_wake(&next->state, 1);
#endif
		}
		return 1;
	}
	return 0;
}

/* Waits as the head of the queue, which closes the lock when it has let others by until
 * `patience` ends. */
static void wait_as_head(struct lock *l, struct node *node, uint32_t tail, uint64_t patience,
			 uint64_t passed)
{
	int closed = 0;
	for (;;) {
		uint64_t before = now(passed), after, until;
		uint32_t word = atomic_load_explicit(&l->word, memory_order_relaxed);
		if (take(l, node, tail, &word))
			return;
		after = now(passed += READ);
		if (closed && after < patience + SPIN) {
			lab_relax();
			continue;
		}
		if (closed) {
			/* Others may enter while it sleeps; it closes the lock when it wakes. */
			while ((word & HELD_MASK) == HELD || (word & HELD_MASK) == HEAD_SLEEPS) {
				uint32_t asleep = (word & ~(uint32_t)(HELD_MASK | CLOSED)) | HEAD_SLEEPS;
				if (swapped(&l->word, &word, asleep, memory_order_relaxed)) {
					lab_futex_wait(&l->word, asleep);
					break;
				}
			}
			closed = 0;
			passed = 0;
			patience = now(passed);
		} else if (after >= patience) {
			atomic_fetch_or_explicit(&l->word, CLOSED, memory_order_relaxed);
			closed = 1;
		} else {
			until = after + POLITE * (after - before);
			if (until > patience)
				until = patience;
			while (now(passed) < until) {
				lab_relax();
				passed += PAUSE;
			}
		}
	}
}

static __attribute__((noinline)) void wait(struct lock *l)
{
	uint32_t word = atomic_load_explicit(&l->word, memory_order_relaxed), tail, before;
	uint64_t began = now(0), patience = began + AWAKE;
	struct node *node;
	while (!(word & (HELD_MASK | CLOSED)))
		if (swapped(&l->word, &word, word | HELD, memory_order_acquire))
			return;
	tail = lab_cpu() + 1;
	node = &nodes[tail - 1];
	atomic_store_explicit(&node->next, 0, memory_order_relaxed);
	atomic_store_explicit(&node->state, WAITS, memory_order_relaxed);
	while (!swapped(&l->word, &word, (word & 0xffff) | tail << TAIL, memory_order_acq_rel))
		;
	before = word >> TAIL;
	if (before) {
		atomic_store_explicit(&nodes[before - 1].next, node, memory_order_release);
		if (wait_to_be_head(node, began))
			patience = now(0) + WOKEN;
	}
	wait_as_head(l, node, tail, patience, 0);
}

void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock;
	uint32_t free = 0;
	(void)ctx;
	if (!swapped(&l->word, &free, HELD, memory_order_acquire))
		wait(l);
}

int lab_trylock(void *lock, void *ctx)
{
	struct lock *l = lock;
	uint32_t free = 0;
	(void)ctx;
	return swapped(&l->word, &free, HELD, memory_order_acquire);
}

void lab_unlock(void *lock, void *ctx)
{
	struct lock *l = lock;
	(void)ctx;
	/* To 2, which is still held, if the head sleeps. */
	uint32_t was = atomic_fetch_sub_explicit(&l->word, 1, memory_order_release);
	if ((was & HELD_MASK) != HELD) {
		atomic_fetch_and_explicit(&l->word, ~(uint32_t)HELD_MASK, memory_order_release);
#ifndef NO_KICK
		lab_futex_wake(&l->word, 1);
#endif
	}
}
