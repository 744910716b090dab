/* Locks from the papers, for C and C++. SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Link with -llocklab_c. A lock here is a plain struct: zeroed memory is a
 * free lock. For fast paths inlined at a call site of your choice, include
 * locklab_inline.h and call the _inline functions; both forms may be mixed on
 * one lock. Written by cbindgen from crates/capi: do not edit. */

#ifndef LOCKLAB_H
#define LOCKLAB_H



#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOCKLAB_ALIGNED(n) __attribute__((aligned(n)))

#ifdef __cplusplus
extern "C" {
#endif

/* Freestanding builds only: the library asks its embedder for the two
 * functions below. Zeroed at start; never freed. */
typedef struct LOCKLAB_ALIGNED(64) {
  char opaque[64];
} locklab_queue_nodes_t;

/* Which CPU this is, below 16383. Preemption is off from before a lock
 * function is called until after the unlock. */
uint32_t locklab_host_cpu(void);

/* The queue nodes of a CPU: always the same. */
locklab_queue_nodes_t *locklab_host_queue_nodes(uint32_t cpu);

#ifdef __cplusplus
}
#endif


// A ticket lock: 4 bytes, first come, first served. Zeroed: free.
typedef struct {
  // For the library and locklab_inline.h only.
  uint32_t word;
} locklab_ticket_t;

// A queued spinlock: 4 bytes, first come, first served, each queued waiter
// spins on a line of its own. Zeroed: free.
typedef struct {
  // For the library and locklab_inline.h only.
  uint32_t word;
} locklab_qspinlock_t;

// An MCS lock: one pointer, first come, first served. Zeroed: free.
typedef struct {
  // For the library and locklab_inline.h only.
  void *tail;
} locklab_mcs_t;

// A waiter of an MCS lock, on the caller's stack. Needs no initialisation;
// stays in place from lock to unlock.
typedef struct LOCKLAB_ALIGNED(64) {
  // For the library and locklab_inline.h only.
  void *next;
  // For the library and locklab_inline.h only.
  uint32_t granted;
} locklab_mcs_node_t;

// A lock algorithm: what it needs and what it does. All pointers to a lock
// are to `size` bytes aligned to `align`, those to a context (a queue node)
// to `context_size` bytes aligned to `context_align`; where `context_size`
// is 0 the context may be NULL.
//
// Locks and contexts stay in place while in use. The nodes of some queue
// locks (those that say so in `locklab locks`) pass from one context to
// another: free a lock and the contexts that it has met together.
typedef struct {
  // The name, ending in a zero byte.
  char name[32];
  // Bytes of a lock.
  size_t size;
  // Alignment of a lock.
  size_t align;
  // Bytes of a context; 0 if none is needed.
  size_t context_size;
  // Alignment of a context.
  size_t context_align;
  // Most CPUs (threads) that may use one lock at a time.
  size_t max_cpus;
  // First come, first served.
  bool fifo;
  // Prefers a waiter of the same NUMA node.
  bool numa_aware;
  // The holder may acquire it again.
  bool recursive;
  // `try_lock` can succeed.
  bool has_try_lock;
  // Makes a free lock of uninitialised memory.
  void (*init)(void *lock);
  // Makes an idle context of uninitialised memory.
  void (*init_context)(void *context);
  // Acquires.
  void (*lock)(void *lock, void *context);
  // Acquires if that needs no waiting; says whether.
  bool (*try_lock)(void *lock, void *context);
  // Releases, with the context of the acquisition.
  void (*unlock)(void *lock, void *context);
} locklab_type_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Acquires the lock; spins until it has it.
//
// # Safety
// `lock` points to a ticket lock.
void locklab_ticket_lock(locklab_ticket_t *lock);

// Acquires the lock if it is free; says whether.
//
// # Safety
// As `locklab_ticket_lock`.
bool locklab_ticket_trylock(locklab_ticket_t *lock);

// Releases the lock.
//
// # Safety
// The caller holds it.
void locklab_ticket_unlock(locklab_ticket_t *lock);

// Slow path of the inline acquire: waits for `ticket`.
//
// # Safety
// `ticket` was drawn from this lock and is not yet served to its end.
void locklab_ticket_wait(locklab_ticket_t *lock, uint16_t ticket);

// Acquires the lock; spins until it has it.
//
// # Safety
// `lock` points to a qspinlock lock.
void locklab_qspinlock_lock(locklab_qspinlock_t *lock);

// Acquires the lock if it is free; says whether.
//
// # Safety
// As `locklab_qspinlock_lock`.
bool locklab_qspinlock_trylock(locklab_qspinlock_t *lock);

// Releases the lock.
//
// # Safety
// The caller holds it.
void locklab_qspinlock_unlock(locklab_qspinlock_t *lock);

// Slow path of the inline acquire: waits, having read `word`, not zero.
//
// # Safety
// `lock` points to a qspinlock.
void locklab_qspinlock_wait(locklab_qspinlock_t *lock, uint32_t word);

// Acquires the lock; spins until it has it.
//
// # Safety
// `lock` points to an mcs lock. `node` is in use by no other acquisition, and
// both stay in place until the unlock.
void locklab_mcs_lock(locklab_mcs_t *lock, locklab_mcs_node_t *node);

// Acquires the lock if it is free; says whether.
//
// # Safety
// As `locklab_mcs_lock`.
bool locklab_mcs_trylock(locklab_mcs_t *lock, locklab_mcs_node_t *node);

// Releases the lock.
//
// # Safety
// The caller holds it, acquired with this `node`.
void locklab_mcs_unlock(locklab_mcs_t *lock, locklab_mcs_node_t *node);

// Slow path of the inline acquire: waits behind `predecessor`.
//
// # Safety
// `node` has just replaced `predecessor`, not null, as the tail of a lock.
void locklab_mcs_wait(locklab_mcs_node_t *predecessor, locklab_mcs_node_t *node);

// Slow path of the inline release: hands the lock to the next waiter.
//
// # Safety
// The holder acquired with `node`, which is no longer the tail.
void locklab_mcs_hand_over(locklab_mcs_node_t *node);

// The lock of this name (as `locklab locks` lists them), or NULL.
//
// # Safety
// `name` points to a string that ends in a zero byte.
const locklab_type_t *locklab_find(const char *name);

// How many locks there are.
size_t locklab_count(void);

// The lock number `index` of `locklab_count()`, or NULL.
const locklab_type_t *locklab_at(size_t index);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LOCKLAB_H */
