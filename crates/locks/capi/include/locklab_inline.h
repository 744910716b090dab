/* Inline fast paths of three locks. SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Each call site chooses: locklab_ticket_lock() is a call, and
 * locklab_ticket_lock_inline() is the fast path in place, with the slow path
 * in the library. Every inlined copy costs the program instruction cache;
 * measure before you inline. Needs GCC or Clang. Usable with -ffreestanding.
 *
 * Every atomic operation here is the one of the same label in
 * crates/locks/locks/src; the pairing is explained there. */
#ifndef LOCKLAB_INLINE_H
#define LOCKLAB_INLINE_H

#include "locklab.h"

#ifdef __cplusplus
#define LOCKLAB_NULL nullptr
#else
#define LOCKLAB_NULL ((void *)0)
#endif
/* The spelling that C89 accepts, too. */
#define LOCKLAB_INLINE static __inline__ __attribute__((always_inline))
#define LOCKLAB_LIKELY(x) __builtin_expect(!!(x), 1)

/* T1 */
LOCKLAB_INLINE void locklab_ticket_lock_inline(locklab_ticket_t *lock)
{
	uint32_t word = __atomic_fetch_add(&lock->word, (uint32_t)1 << 16,
					   __ATOMIC_ACQUIRE);
	uint16_t ticket = (uint16_t)(word >> 16);

	if (!LOCKLAB_LIKELY((uint16_t)word == ticket))
		locklab_ticket_wait(lock, ticket);
}

/* T1' */
LOCKLAB_INLINE bool locklab_ticket_trylock_inline(locklab_ticket_t *lock)
{
	uint32_t word = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);

	return (uint16_t)(word >> 16) == (uint16_t)word &&
	       __atomic_compare_exchange_n(&lock->word, &word,
					   word + ((uint32_t)1 << 16), false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* T3 */
LOCKLAB_INLINE void locklab_ticket_unlock_inline(locklab_ticket_t *lock)
{
#if defined(__x86_64__) || defined(__i386__)
	/* Only the holder writes the low half: no lock prefix. */
	__asm__ volatile("incw %0" : "+m"(lock->word) : : "memory", "cc");
#else
	locklab_ticket_unlock(lock);
#endif
}

/* Q1 */
LOCKLAB_INLINE void locklab_qspinlock_lock_inline(locklab_qspinlock_t *lock)
{
	uint32_t word = 0;

	if (!LOCKLAB_LIKELY(__atomic_compare_exchange_n(
		    &lock->word, &word, 1, false, __ATOMIC_ACQUIRE,
		    __ATOMIC_RELAXED)))
		locklab_qspinlock_wait(lock, word);
}

/* Q1 */
LOCKLAB_INLINE bool locklab_qspinlock_trylock_inline(locklab_qspinlock_t *lock)
{
	uint32_t word = 0;

	return __atomic_load_n(&lock->word, __ATOMIC_RELAXED) == 0 &&
	       __atomic_compare_exchange_n(&lock->word, &word, 1, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Q9 */
LOCKLAB_INLINE void locklab_qspinlock_unlock_inline(locklab_qspinlock_t *lock)
{
#if defined(__x86_64__) || defined(__i386__)
	__asm__ volatile("movb $0, %0" : "+m"(lock->word) : : "memory");
#else
	locklab_qspinlock_unlock(lock);
#endif
}

/* M1, M2 */
LOCKLAB_INLINE void locklab_mcs_lock_inline(locklab_mcs_t *lock,
					    locklab_mcs_node_t *node)
{
	void *predecessor;

	__atomic_store_n(&node->next, LOCKLAB_NULL, __ATOMIC_RELAXED);
	predecessor = __atomic_exchange_n(&lock->tail, (void *)node,
					  __ATOMIC_ACQ_REL);
	if (!LOCKLAB_LIKELY(predecessor == LOCKLAB_NULL))
		locklab_mcs_wait((locklab_mcs_node_t *)predecessor, node);
}

/* M2' */
LOCKLAB_INLINE bool locklab_mcs_trylock_inline(locklab_mcs_t *lock,
					       locklab_mcs_node_t *node)
{
	void *expected = LOCKLAB_NULL;

	__atomic_store_n(&node->next, LOCKLAB_NULL, __ATOMIC_RELAXED);
	return __atomic_compare_exchange_n(&lock->tail, &expected,
					   (void *)node, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* M5; a linked successor first: then the tail's line stays where it is */
LOCKLAB_INLINE void locklab_mcs_unlock_inline(locklab_mcs_t *lock,
					      locklab_mcs_node_t *node)
{
	void *expected = node;

	if (!LOCKLAB_LIKELY(__atomic_load_n(&node->next, __ATOMIC_RELAXED) ==
			    LOCKLAB_NULL) ||
	    !LOCKLAB_LIKELY(__atomic_compare_exchange_n(
		    &lock->tail, &expected, LOCKLAB_NULL, false,
		    __ATOMIC_RELEASE, __ATOMIC_RELAXED)))
		locklab_mcs_hand_over(node);
}

/* For comparing the two: in a file compiled with -DLOCKLAB_UNLOCK_INLINE=1
 * every locklab_*_unlock() below this line is the fast path in place; with 0,
 * or without, it is the call. ('locklab compare --inline ... --build ...'
 * makes both builds of one source.) */
#if defined(LOCKLAB_UNLOCK_INLINE) && LOCKLAB_UNLOCK_INLINE
#define locklab_ticket_unlock locklab_ticket_unlock_inline
#define locklab_qspinlock_unlock locklab_qspinlock_unlock_inline
#define locklab_mcs_unlock locklab_mcs_unlock_inline
#endif

#endif /* LOCKLAB_INLINE_H */
