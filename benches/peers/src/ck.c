/* Loops around the locks of Concurrency Kit (libck-dev), which are inline
 * functions of its headers: the loop is in C so that they are inlined into it,
 * as those of Rust are into theirs. Each is the loop of the same name in
 * src/lib.rs. SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <ck_pr.h>
#include <ck_spinlock.h>
#include <stdbool.h>
#include <stdint.h>

#ifndef ONLY_INCLUDE

struct counts {
	uint32_t owner;
	uint64_t handoffs;
};

#define BARRIER() __asm__ volatile("" : : : "memory")
#define LINE __attribute__((aligned(64)))

/* What the locks protect. */
static struct {
	volatile uint64_t value LINE;
} protected_data;

/* The lock, found by what came of the work before: `offset` is 0. */
#define AT(lock) ((__typeof__(&(lock)))((char *)&(lock) + offset))

/* As in src/lib.rs. */
static inline uint64_t multiply(uint64_t value, uint64_t steps)
{
	for (uint64_t step = 0; step < steps; step++) {
		value *= 0x9e3779b97f4a7c15;
		__asm__ volatile("" : "+r"(value) : : "memory");
	}
	return value;
}

/* CONTEXT declares what a thread needs, from its number `me`. */
#define LOOPS(name, CONTEXT, LOCK, UNLOCK)                                     \
	void locklab_ck_##name##_uncontended(uint64_t pairs)                   \
	{                                                                      \
		const uint32_t me = 0;                                         \
		const uint64_t offset = 0;                                     \
		CONTEXT;                                                       \
		(void)me;                                                      \
		for (uint64_t pair = 0; pair < pairs; pair++) {                \
			LOCK;                                                  \
			BARRIER();                                             \
			UNLOCK;                                                \
		}                                                              \
	}                                                                      \
	uint64_t locklab_ck_##name##_apart(uint64_t pairs, uint64_t steps)     \
	{                                                                      \
		const uint32_t me = 0;                                         \
		uint64_t value = 1, none = 0;                                  \
		CONTEXT;                                                       \
		(void)me;                                                      \
		__asm__ volatile("" : "+r"(none));                             \
		for (uint64_t pair = 0; pair < pairs; pair++) {                \
			const uint64_t offset = value & none;                  \
			LOCK;                                                  \
			value = multiply(protected_data.value ^ value, steps); \
			protected_data.value = value;                          \
			UNLOCK;                                                \
			value = multiply(value, steps);                        \
		}                                                              \
		return value;                                                  \
	}                                                                      \
	uint64_t locklab_ck_##name##_contended(uint32_t me,                    \
					       struct counts *counts,          \
					       const bool *stop)               \
	{                                                                      \
		const uint64_t offset = 0;                                     \
		uint64_t pairs = 0;                                            \
		CONTEXT;                                                       \
		while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {             \
			LOCK;                                                  \
			if (counts->owner != me) {                             \
				counts->owner = me;                            \
				counts->handoffs++;                            \
			}                                                      \
			UNLOCK;                                                \
			pairs++;                                               \
		}                                                              \
		return pairs;                                                  \
	}

#define NOTHING (void)0

static ck_spinlock_fas_t fas LINE = CK_SPINLOCK_FAS_INITIALIZER;
LOOPS(fas, NOTHING, ck_spinlock_fas_lock(AT(fas)), ck_spinlock_fas_unlock(AT(fas)))

static ck_spinlock_cas_t cas LINE = CK_SPINLOCK_CAS_INITIALIZER;
LOOPS(cas, NOTHING, ck_spinlock_cas_lock(AT(cas)), ck_spinlock_cas_unlock(AT(cas)))

static ck_spinlock_cas_t cas_eb LINE = CK_SPINLOCK_CAS_INITIALIZER;
LOOPS(cas_eb, NOTHING, ck_spinlock_cas_lock_eb(AT(cas_eb)),
      ck_spinlock_cas_unlock(AT(cas_eb)))

static ck_spinlock_ticket_t ticket LINE = CK_SPINLOCK_TICKET_INITIALIZER;
LOOPS(ticket, NOTHING, ck_spinlock_ticket_lock(AT(ticket)),
      ck_spinlock_ticket_unlock(AT(ticket)))

static ck_spinlock_ticket_t ticket_pb LINE = CK_SPINLOCK_TICKET_INITIALIZER;
LOOPS(ticket_pb, NOTHING, ck_spinlock_ticket_lock_pb(AT(ticket_pb), 2),
      ck_spinlock_ticket_unlock(AT(ticket_pb)))

static ck_spinlock_mcs_t mcs LINE = CK_SPINLOCK_MCS_INITIALIZER;
LOOPS(mcs, struct ck_spinlock_mcs node LINE, ck_spinlock_mcs_lock(AT(mcs), &node),
      ck_spinlock_mcs_unlock(AT(mcs), &node))

/* The queue begins with a node that nobody owns; a thread keeps the node
 * that it leaves with. */
static struct {
	struct ck_spinlock_clh node LINE;
} clh_nodes[3];
static struct ck_spinlock_clh *clh LINE;
static struct {
	struct ck_spinlock_clh *node LINE;
} clh_of[2];
LOOPS(clh, struct ck_spinlock_clh **node = &clh_of[me].node,
      ck_spinlock_clh_lock(AT(clh), *node), ck_spinlock_clh_unlock(node))

/* As many slots as ours has. */
#define SLOTS 512
static struct ck_spinlock_anderson_thread anderson_slots[SLOTS] LINE;
static ck_spinlock_anderson_t anderson LINE;
LOOPS(anderson, struct ck_spinlock_anderson_thread *slot,
      ck_spinlock_anderson_lock(AT(anderson), &slot),
      ck_spinlock_anderson_unlock(AT(anderson), slot))

void locklab_ck_init(void)
{
	ck_spinlock_clh_init(&clh, &clh_nodes[2].node);
	clh_of[0].node = &clh_nodes[0].node;
	clh_of[1].node = &clh_nodes[1].node;
	ck_spinlock_anderson_init(&anderson, anderson_slots, SLOTS);
}

#endif
