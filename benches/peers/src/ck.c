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

/* CONTEXT declares what a thread needs, from its number `me`. */
#define LOOPS(name, CONTEXT, LOCK, UNLOCK)                                     \
	void locklab_ck_##name##_uncontended(uint64_t pairs)                   \
	{                                                                      \
		const uint32_t me = 0;                                         \
		CONTEXT;                                                       \
		(void)me;                                                      \
		for (uint64_t pair = 0; pair < pairs; pair++) {                \
			LOCK;                                                  \
			BARRIER();                                             \
			UNLOCK;                                                \
		}                                                              \
	}                                                                      \
	uint64_t locklab_ck_##name##_contended(uint32_t me,                    \
					       struct counts *counts,          \
					       const bool *stop)               \
	{                                                                      \
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
LOOPS(fas, NOTHING, ck_spinlock_fas_lock(&fas), ck_spinlock_fas_unlock(&fas))

static ck_spinlock_cas_t cas LINE = CK_SPINLOCK_CAS_INITIALIZER;
LOOPS(cas, NOTHING, ck_spinlock_cas_lock(&cas), ck_spinlock_cas_unlock(&cas))

static ck_spinlock_cas_t cas_eb LINE = CK_SPINLOCK_CAS_INITIALIZER;
LOOPS(cas_eb, NOTHING, ck_spinlock_cas_lock_eb(&cas_eb),
      ck_spinlock_cas_unlock(&cas_eb))

static ck_spinlock_ticket_t ticket LINE = CK_SPINLOCK_TICKET_INITIALIZER;
LOOPS(ticket, NOTHING, ck_spinlock_ticket_lock(&ticket),
      ck_spinlock_ticket_unlock(&ticket))

static ck_spinlock_ticket_t ticket_pb LINE = CK_SPINLOCK_TICKET_INITIALIZER;
LOOPS(ticket_pb, NOTHING, ck_spinlock_ticket_lock_pb(&ticket_pb, 2),
      ck_spinlock_ticket_unlock(&ticket_pb))

static ck_spinlock_mcs_t mcs LINE = CK_SPINLOCK_MCS_INITIALIZER;
LOOPS(mcs, struct ck_spinlock_mcs node LINE, ck_spinlock_mcs_lock(&mcs, &node),
      ck_spinlock_mcs_unlock(&mcs, &node))

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
      ck_spinlock_clh_lock(&clh, *node), ck_spinlock_clh_unlock(node))

/* As many slots as ours has. */
#define SLOTS 512
static struct ck_spinlock_anderson_thread anderson_slots[SLOTS] LINE;
static ck_spinlock_anderson_t anderson LINE;
LOOPS(anderson, struct ck_spinlock_anderson_thread *slot,
      ck_spinlock_anderson_lock(&anderson, &slot),
      ck_spinlock_anderson_unlock(&anderson, slot))

void locklab_ck_init(void)
{
	ck_spinlock_clh_init(&clh, &clh_nodes[2].node);
	clh_of[0].node = &clh_nodes[0].node;
	clh_of[1].node = &clh_nodes[1].node;
	ck_spinlock_anderson_init(&anderson, anderson_slots, SLOTS);
}

#endif
