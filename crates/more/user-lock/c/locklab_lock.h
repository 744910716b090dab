/* The header for a lock of your own, included by a C or C++ file.
 *
 * Define a lock type and a context type (memory that a thread passes to an
 * acquisition, such as a queue node), name them with LOCKLAB_LOCK, and define
 * lab_lock and lab_unlock. Use C11 or C++11 atomics; no inline assembly, no
 * thread-local data, no allocation. `locklab new-lock FILE` writes a template.
 */
#ifndef LOCKLAB_LOCK_H
#define LOCKLAB_LOCK_H

#include <stddef.h>

#ifdef __cplusplus
#define LOCKLAB_EXTERN extern "C"
extern "C" {
#else
#define LOCKLAB_EXTERN extern
#endif

/* Defined by you. The memory of lock and context is zero before lab_init, which is
 * called once, when the lock is in its place. A context is used for one
 * acquisition at a time; it is zero before its first. */
void lab_lock(void *lock, void *ctx);
void lab_unlock(void *lock, void *ctx);
void lab_init(void *lock);               /* optional */
int lab_trylock(void *lock, void *ctx);  /* optional: 1 if acquired */
int lab_is_locked(const void *lock);     /* optional */

/* Optional, the first two together: readers may hold the lock at the same time,
 * and no writer beside them. Without them a reader locks as a writer does. */
void lab_read_lock(void *lock, void *ctx);
void lab_read_unlock(void *lock, void *ctx);
int lab_read_trylock(void *lock, void *ctx); /* 1 if acquired */
void lab_downgrade(void *lock, void *ctx);   /* a writer goes on as a reader */

/* Provided by Locklab. */
unsigned lab_cpu(void);  /* this CPU's number, from 0 */
unsigned lab_node(void); /* its NUMA node */

/* Sleep and wake-up, as the futexes of Linux: a word is 4 bytes, aligned. The first
 * sleeps while the word holds `expected`, and may return at any time; 0 if it slept.
 * The second wakes at most `count` sleepers and returns how many it woke. A call of
 * syscall(SYS_futex, word, FUTEX_WAIT or FUTEX_WAKE, ...) is the same. */
int lab_futex_wait(const volatile void *word, unsigned expected);
int lab_futex_wake(const volatile void *word, unsigned count);
#ifdef LOCKLAB_NATIVE
static inline void lab_relax(void) /* one pause of a spinning CPU */
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
	__asm__ __volatile__("yield" ::: "memory");
#else
	__asm__ __volatile__("" ::: "memory");
#endif
}
#else
void lab_relax(void);
#endif

#ifdef __cplusplus
}
#endif

/* A context for a lock that needs none. */
typedef struct {
	char unused;
} lab_no_context;

/* Data that Locklab reads from the compiled file, without running it. */
struct locklab_description {
	unsigned long long version, lock_bytes, lock_align, ctx_bytes, ctx_align;
	char name[40];
};

/* The lock's name in reports, its type, and that of its context. */
#define LOCKLAB_LOCK(NAME, LOCK, CTX)                                              \
	LOCKLAB_EXTERN const struct locklab_description locklab_description;       \
	const struct locklab_description locklab_description = {                   \
		1, sizeof(LOCK), __alignof__(LOCK), sizeof(CTX), __alignof__(CTX), \
		#NAME                                                              \
	};                                                                         \
	LOCKLAB_TYPES(LOCK, CTX)

/* For the names of words in a trace of the checker. */
#ifdef LOCKLAB_CHECKER
#define LOCKLAB_TYPES(LOCK, CTX)                      \
	LOCKLAB_EXTERN __typeof__(LOCK) *locklab_a_lock; \
	__typeof__(LOCK) *locklab_a_lock;                \
	LOCKLAB_EXTERN __typeof__(CTX) *locklab_a_context; \
	__typeof__(CTX) *locklab_a_context
#else
#define LOCKLAB_TYPES(LOCK, CTX) struct locklab_description
#endif

/* The lock serves in the order of arrival: `verify` checks that. */
#define LOCKLAB_FIFO()                     \
	LOCKLAB_EXTERN const char locklab_fifo; \
	const char locklab_fifo = 1

/* At most so many CPUs may use the lock: more are refused. */
#define LOCKLAB_CPUS(COUNT)                              \
	LOCKLAB_EXTERN const unsigned long long locklab_cpus; \
	const unsigned long long locklab_cpus = (COUNT)

/* Of the readers that come when a writer waits at most so many enter before it: `verify`
 * checks that. */
#define LOCKLAB_READERS_PASS(COUNT)                              \
	LOCKLAB_EXTERN const unsigned long long locklab_readers_pass; \
	const unsigned long long locklab_readers_pass = (COUNT)

/* Who has released the lock touches it no more, so that who holds it last may free it when
 * it has released it, too: `verify` checks that. */
#define LOCKLAB_ENDS_BY_UNLOCK()                      \
	LOCKLAB_EXTERN const char locklab_ends_by_unlock; \
	const char locklab_ends_by_unlock = 1

/* Who holds the lock may acquire it again, with the same context, and releases it as often:
 * `verify` checks that. */
#define LOCKLAB_RECURSIVE()                      \
	LOCKLAB_EXTERN const char locklab_recursive; \
	const char locklab_recursive = 1

/* Plain accesses count as relaxed ones in `verify`, as compilers for a kernel or a library
 * of before C11 make them: none is a data race. */
#define LOCKLAB_PLAIN_IS_RELAXED()                      \
	LOCKLAB_EXTERN const char locklab_plain_is_relaxed; \
	const char locklab_plain_is_relaxed = 1

/* A CPU that acquires or holds the lock is not interrupted by code that acquires
 * another lock of the kind: `verify` checks no promise of interrupts. */
#define LOCKLAB_NO_INTERRUPTS()                     \
	LOCKLAB_EXTERN const char locklab_no_interrupts; \
	const char locklab_no_interrupts = 1

/* A CPU acquires or holds at most so many locks of the kind at once, each in an
 * interrupt of another or inside it: `verify` checks so many and not more. */
#define LOCKLAB_NESTING(COUNT)                              \
	LOCKLAB_EXTERN const unsigned long long locklab_nesting; \
	const unsigned long long locklab_nesting = (COUNT)

#endif
