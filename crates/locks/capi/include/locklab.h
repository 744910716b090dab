/* Locks from the papers, for C and C++. SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Link with -llocklab_c. A lock here is a plain struct: zeroed memory is a
 * free lock, and so is LOCKLAB_..._INIT. C++ has locklab.hpp beside this. For
 * fast paths inlined at a call site of your choice, include locklab_inline.h
 * and call the _inline functions; both forms may be mixed on one lock. Written by cbindgen from crates/locks/capi: do not edit. */

#ifndef LOCKLAB_H
#define LOCKLAB_H



#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOCKLAB_ALIGNED(n) __attribute__((aligned(n)))

/* The version of this header; locklab_version() is that of the library. */
#define LOCKLAB_VERSION_MAJOR 0
#define LOCKLAB_VERSION_MINOR 3
#define LOCKLAB_VERSION_PATCH 0
#define LOCKLAB_VERSION_OF(major, minor, patch) \
  ((major) << 16 | (minor) << 8 | (patch))
#define LOCKLAB_VERSION                                              \
  LOCKLAB_VERSION_OF(LOCKLAB_VERSION_MAJOR, LOCKLAB_VERSION_MINOR,   \
                     LOCKLAB_VERSION_PATCH)

/* Initialisers of free locks and of an idle node. */
#define LOCKLAB_TICKET_INIT { 0 }
#define LOCKLAB_QSPINLOCK_INIT { 0 }
#define LOCKLAB_MCS_INIT { 0 }
#define LOCKLAB_MCS_NODE_INIT { 0, 0 }

#ifdef __cplusplus
extern "C" {
#endif

/* Freestanding builds only: the queue nodes of a CPU, zeroed at start and never
 * freed. The embedder defines the two functions below. */
typedef struct LOCKLAB_ALIGNED(64) {
  char opaque[64];
} locklab_queue_nodes_t;

/* The number of this CPU, below 16383. Preemption must be off from before a
 * lock function is called until after the unlock. */
uint32_t locklab_host_cpu(void);

/* The queue nodes of a CPU, always the same ones. */
locklab_queue_nodes_t *locklab_host_queue_nodes(uint32_t cpu);

/* Freestanding builds only: optional functions of the embedder. A member may
 * be NULL. None of them may use a lock of the library. */
typedef struct {
  /* The NUMA node of this CPU. Default: one node. */
  uint32_t (*node)(void);
  /* Nanoseconds of a clock that never goes back. Default: time stands still,
   * and no timeout ends. */
  uint64_t (*now)(void);
  /* Sleeps until wake() is called for the word, but not if it no longer holds
   * `expected`; may return at any time. Default: one pause of the CPU. */
  void (*wait)(const uint32_t *word, uint32_t expected);
  /* Ends the wait() of one CPU on the word. Only the address may be used: the
   * memory may have been freed. */
  void (*wake)(const uint32_t *word);
  /* Whether the locks run in a virtual machine whose hypervisor does not help
   * waiting CPUs. Default: false. */
  bool (*virtualized)(void);
} locklab_host_t;

/* Sets the host of the library, which must stay valid. Call it before any
 * lock is contended: a waiter that sleeps through one host is not woken by another.
 * NULL removes the host. */
void locklab_set_host(const locklab_host_t *host);

#ifdef __cplusplus
}
#endif


/*
 A ticket lock: 4 bytes, first come, first served. Zeroed: free.
 */
typedef struct {
  /*
   For the library and locklab_inline.h only.
   */
  uint32_t word;
} locklab_ticket_t;

/*
 A queued spinlock: 4 bytes, first come, first served, each queued waiter
 spins on a line of its own. Zeroed: free.
 */
typedef struct {
  /*
   For the library and locklab_inline.h only.
   */
  uint32_t word;
} locklab_qspinlock_t;

/*
 An MCS lock: one pointer, first come, first served. Zeroed: free.
 */
typedef struct {
  /*
   For the library and locklab_inline.h only.
   */
  void *tail;
} locklab_mcs_t;

/*
 A waiter of an MCS lock, on the caller's stack. Needs no initialisation;
 stays in place from lock to unlock.
 */
typedef struct LOCKLAB_ALIGNED(64) {
  /*
   For the library and locklab_inline.h only.
   */
  void *next;
  /*
   For the library and locklab_inline.h only.
   */
  uint32_t granted;
} locklab_mcs_node_t;

/*
 A lock algorithm: its requirements and its functions. All pointers to a lock
 are to `size` bytes aligned to `align`, those to a context (a queue node)
 to `context_size` bytes aligned to `context_align`; where `context_size`
 is 0 the context may be NULL.

 Locks and contexts stay in place while in use. The nodes of some queue
 locks (those that say so in `locklab locks`) pass from one context to
 another: free a lock only together with all contexts used with it.
 */
typedef struct {
  /*
   The name, ending in a zero byte.
   */
  char name[32];
  /*
   Bytes of a lock.
   */
  size_t size;
  /*
   Alignment of a lock.
   */
  size_t align;
  /*
   Bytes of a context; 0 if none is needed.
   */
  size_t context_size;
  /*
   Alignment of a context.
   */
  size_t context_align;
  /*
   The largest number of CPUs (threads) that may use a lock at a time.
   */
  size_t max_cpus;
  /*
   First come, first served.
   */
  bool fifo;
  /*
   Prefers a waiter of the same NUMA node.
   */
  bool numa_aware;
  /*
   The holder may acquire it again.
   */
  bool recursive;
  /*
   `try_lock` can succeed.
   */
  bool has_try_lock;
  /*
   Makes a free lock of uninitialised memory.
   */
  void (*init)(void *lock);
  /*
   Makes an idle context of uninitialised memory.
   */
  void (*init_context)(void *context);
  /*
   Waits until it has the lock.
   */
  void (*lock)(void *lock, void *context);
  /*
   Acquires if that needs no waiting; returns whether it did.
   */
  bool (*try_lock)(void *lock, void *context);
  /*
   Releases, with the context of the acquisition.
   */
  void (*unlock)(void *lock, void *context);
  /*
   A waiter may sleep.
   */
  bool parks;
  /*
   Works in memory that processes share.
   */
  bool shared_memory;
  /*
   `unlock` still uses the lock after another may have acquired it: do
   not free a lock, having acquired it last, before every other `unlock`
   has returned.
   */
  bool touches_after_release;
  /*
   1 if some CPU holds the lock or waits for it at the moment of the call,
   0 if not, -1 if the lock cannot tell.
   */
  int (*is_locked)(void *lock);
  /*
   Acquires, or gives up when `locklab_now()` has reached `deadline`;
   returns whether it acquired. NULL if the lock cannot be given up.
   */
  bool (*lock_until)(void *lock, void *context, uint64_t deadline);
  /*
   Returns whether a context with which `lock_until` has given up may be freed, or
   used with another lock. NULL if it always may.
   */
  bool (*context_is_idle)(void *context);
  /*
   Acquires for reading, together with other readers. NULL, as the next
   three, if the lock is exclusive only; `lock` and `unlock` are for
   writing.
   */
  void (*read_lock)(void *lock);
  /*
   Acquires for reading if that needs no waiting; returns whether it did.
   */
  bool (*try_read_lock)(void *lock);
  /*
   Releases one reader.
   */
  void (*read_unlock)(void *lock);
  /*
   Makes the writer a reader, without any other holder in between.
   */
  void (*downgrade)(void *lock);
  /*
   Returns whether this CPU holds the lock. NULL, as the next two, if the lock is
   not recursive.
   */
  bool (*held)(void *lock);
  /*
   Releases every level that this CPU holds, and returns how many there
   were.
   */
  uint32_t (*release_all)(void *lock);
  /*
   Acquires `depth` levels: the inverse of `release_all`.
   */
  void (*acquire_count)(void *lock, uint32_t depth);
} locklab_type_t;

#ifdef __cplusplus
extern "C" {
#endif /* __cplusplus */

/*
 Acquires the lock; spins until it has it.

 Requires:
 `lock` points to a ticket lock.
 */
void locklab_ticket_lock(locklab_ticket_t *lock);

/*
 Acquires the lock if it is free; returns whether it did.

 Requires:
 The same conditions as for `locklab_ticket_lock`.
 */
bool locklab_ticket_trylock(locklab_ticket_t *lock);

/*
 Releases the lock.

 Requires:
 The caller holds it.
 */
void locklab_ticket_unlock(locklab_ticket_t *lock);

/*
 Waits for `ticket`: the slow path of the inline acquire.

 Requires:
 `ticket` was drawn from this lock and has not been released.
 */
void locklab_ticket_wait(locklab_ticket_t *lock, uint16_t ticket);

/*
 Acquires the lock; spins until it has it.

 Requires:
 `lock` points to a qspinlock.
 */
void locklab_qspinlock_lock(locklab_qspinlock_t *lock);

/*
 Acquires the lock if it is free; returns whether it did.

 Requires:
 The same conditions as for `locklab_qspinlock_lock`.
 */
bool locklab_qspinlock_trylock(locklab_qspinlock_t *lock);

/*
 Releases the lock.

 Requires:
 The caller holds it.
 */
void locklab_qspinlock_unlock(locklab_qspinlock_t *lock);

/*
 Waits after a read that returned `word`, not 0: the slow path of the inline acquire.

 Requires:
 `lock` points to a qspinlock.
 */
void locklab_qspinlock_wait(locklab_qspinlock_t *lock, uint32_t word);

/*
 Acquires the lock; spins until it has it.

 Requires:
 `lock` points to an MCS lock. `node` is in use by no other acquisition, and
 both stay in place until the unlock.
 */
void locklab_mcs_lock(locklab_mcs_t *lock, locklab_mcs_node_t *node);

/*
 Acquires the lock if it is free; returns whether it did.

 Requires:
 The same conditions as for `locklab_mcs_lock`.
 */
bool locklab_mcs_trylock(locklab_mcs_t *lock, locklab_mcs_node_t *node);

/*
 Releases the lock.

 Requires:
 The caller holds it, acquired with this `node`.
 */
void locklab_mcs_unlock(locklab_mcs_t *lock, locklab_mcs_node_t *node);

/*
 Waits behind `predecessor`: the slow path of the inline acquire.

 Requires:
 `node` has just replaced `predecessor`, not null, as the tail of a lock.
 */
void locklab_mcs_wait(locklab_mcs_node_t *predecessor, locklab_mcs_node_t *node);

/*
 Hands the lock to the next waiter: the slow path of the inline release.

 Requires:
 The holder acquired with `node`, which is no longer the tail.
 */
void locklab_mcs_hand_over(locklab_mcs_node_t *node);

/*
 Returns the version of this library: `LOCKLAB_VERSION` of its header.
 */
uint32_t locklab_version(void);

/*
 Returns the nanoseconds of a clock that never goes back, by which deadlines are
 measured: CLOCK_MONOTONIC on unix; in a freestanding build the host's.
 */
uint64_t locklab_now(void);

/*
 Returns the lock of this name (as `locklab locks` lists them), or NULL.

 Requires:
 `name` points to a string that ends in a zero byte.
 */
const locklab_type_t *locklab_find(const char *name);

/*
 Returns the number of locks.
 */
size_t locklab_count(void);

/*
 Returns the lock number `index` of `locklab_count()`, or NULL.
 */
const locklab_type_t *locklab_at(size_t index);

#ifdef __cplusplus
}  /* extern "C" */
#endif  /* __cplusplus */

#endif  /* LOCKLAB_H */
