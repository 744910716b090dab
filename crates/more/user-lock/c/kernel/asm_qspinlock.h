/* Replaces an architecture's asm/qspinlock.h, which on x86 has one
 * instruction of inline assembly (btsl); the generic code does the same with a
 * read-modify-write. The bound is that
 * of x86, where nothing is explored. */
#include <asm-generic/qspinlock_types.h>
#ifdef LOCKLAB_CHECKER
#define _Q_PENDING_LOOPS 1
#else
#define _Q_PENDING_LOOPS (1 << 9)
#endif
#include <asm-generic/qspinlock.h>
