/* What tests written for GenMC and Dat3M declare, for `locklab verify ./test.c`. */
#ifndef LOCKLAB_OWN_TEST_H
#define LOCKLAB_OWN_TEST_H

#ifdef __cplusplus
extern "C" {
#else
#include <stdbool.h>
#endif

/* Executions in which this is false are not looked at. */
void __VERIFIER_assume(int condition);
void __VERIFIER_assert(int condition);
void __VERIFIER_error(void);

/* Any value: 0, 1 and, of an int, -1. */
int __VERIFIER_nondet_int(void);
unsigned __VERIFIER_nondet_uint(void);
bool __VERIFIER_nondet_bool(void);
unsigned __VERIFIER_tid(void);

/* Loops that wait are found without these marks, which do nothing. */
static inline void __VERIFIER_loop_begin(void) {}
static inline void __VERIFIER_loop_bound(int bound) { (void)bound; }
static inline void __VERIFIER_spin_start(void) {}
static inline void __VERIFIER_spin_end(int ended) { (void)ended; }

/* Threads without pthread_t. */
typedef unsigned long __VERIFIER_thread_t;
__VERIFIER_thread_t __VERIFIER_spawn(void *(*function)(void *), void *argument);
static inline __VERIFIER_thread_t __VERIFIER_spawn_symmetric(void *(*function)(void *),
							     void *argument, __VERIFIER_thread_t like)
{
	(void)like;
	return __VERIFIER_spawn(function, argument);
}
void *__VERIFIER_join(__VERIFIER_thread_t thread);
#define __VERIFIER_join_symmetric(thread) ((void)__VERIFIER_join(thread))

/* Hints that save executions; they change no verdict. */
#define __VERIFIER_local_write(s) do { s; } while (0)
#define __VERIFIER_final_write(s) do { s; } while (0)
#define __VERIFIER_helped_CAS(s) do { s; } while (0)
#define __VERIFIER_helping_CAS(s) do { s; } while (0)
#define __VERIFIER_speculative_read(e) (e)
#define __VERIFIER_confirming_CAS(e) (e)
#define __VERIFIER_optional(s) do { s; } while (0)

#define await_while(condition) while (condition)

#ifdef __cplusplus
}
#endif
#endif
