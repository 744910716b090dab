/* The functions that -fsanitize=thread calls, in place of libtsan: every access
 * is passed to the host that loaded the library, with the instruction's address.
 *
 * Compiled without -fsanitize=thread and linked into the user's library. Only
 * the names of the entry points are those of the compiler's interface.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

/* Of the system's interface; not every C library brings its header. */
enum {
	FUTEX_WAIT,
	FUTEX_WAKE,
	FUTEX_WAIT_BITSET = 9,
	FUTEX_WAKE_BITSET,
	FUTEX_PRIVATE_FLAG = 128,
	FUTEX_CLOCK_REALTIME = 256
};
#define FUTEX_BITSET_MATCH_ANY 0xffffffffu

#define HIDDEN __attribute__((visibility("hidden"), used))
#define SITE __builtin_return_address(0)

struct locklab_hooks {
	uint64_t (*load)(const volatile void *, unsigned, int, void *);
	void (*store)(volatile void *, unsigned, uint64_t, int, void *);
	uint64_t (*update)(volatile void *, unsigned, unsigned, uint64_t, int, void *);
	uint64_t (*compare)(volatile void *, unsigned, uint64_t, uint64_t, int, int, void *);
	void (*fence)(int, void *);
	void (*read)(const volatile void *, size_t, unsigned, void *);
	void (*write)(const volatile void *, size_t, unsigned, void *);
	unsigned (*cpu)(void);
	unsigned (*node)(void);
	void (*relax)(void *, size_t, void *);
	void (*fail)(const char *, const char *, unsigned);
	int (*futex_wait)(const volatile void *, unsigned, void *);
	unsigned (*futex_wake)(const volatile void *, unsigned, void *);
	void (*refuse_call)(long, long, void *);
};

/* Set when the library has been loaded. */
struct locklab_hooks locklab_hooks __attribute__((section(".locklab_hooks")));

/* How the function under way was entered: the registers that a call preserves, and the
 * stack pointer; and whether a compare-and-swap that would succeed has failed. */
HIDDEN struct {
	uint64_t registers[6], stack, failed;
} locklab_entered __attribute__((section(".locklab_hooks")));
void *const locklab_entered_at = &locklab_entered;

/* In the failure order of a compare-and-swap: it may fail without cause. */
#define WEAK 0x100

/* ENTRY(name) notes that, and goes on with the function BODY(name). */
#if defined(__x86_64__)
#define BODY(NAME) locklab_body_of_##NAME
#define ENTRY(NAME)                                                                       \
	__asm__(".text\n"                                                                 \
		".globl " #NAME "\n"                                                      \
		".hidden " #NAME "\n"                                                     \
		".type " #NAME ", @function\n" #NAME ":\n"                                \
		".cfi_startproc\n"                                                        \
		"	movq %rbx, locklab_entered(%rip)\n"                              \
		"	movq %rbp, locklab_entered+8(%rip)\n"                            \
		"	movq %r12, locklab_entered+16(%rip)\n"                           \
		"	movq %r13, locklab_entered+24(%rip)\n"                           \
		"	movq %r14, locklab_entered+32(%rip)\n"                           \
		"	movq %r15, locklab_entered+40(%rip)\n"                           \
		"	movq %rsp, locklab_entered+48(%rip)\n"                           \
		"	jmp locklab_body_of_" #NAME "\n"                                 \
		".cfi_endproc\n"                                                          \
		".size " #NAME ", . - " #NAME "\n");
#else
#define BODY(NAME) NAME
#define ENTRY(NAME)
#endif

enum { EXCHANGE, ADD, SUB, AND, OR, XOR, NAND };

/* How an access that is no atomic one is written. */
enum { PLAIN_ACCESS, VOLATILE_ACCESS };

HIDDEN void __tsan_init(void) {}
HIDDEN void __tsan_func_entry(void *site) { (void)site; }
HIDDEN void __tsan_func_exit(void) {}

#define PLAIN_AS(NAME, SIZE, KIND)                                                       \
	ENTRY(__tsan_##NAME##read##SIZE)                                                 \
	HIDDEN void BODY(__tsan_##NAME##read##SIZE)(void *a)                             \
	{                                                                                \
		locklab_hooks.read(a, SIZE, KIND, SITE);                                 \
	}                                                                                \
	ENTRY(__tsan_##NAME##write##SIZE)                                                \
	HIDDEN void BODY(__tsan_##NAME##write##SIZE)(void *a)                            \
	{                                                                                \
		locklab_hooks.write(a, SIZE, KIND, SITE);                                \
	}
#define PLAIN(SIZE)                                                                      \
	PLAIN_AS(, SIZE, PLAIN_ACCESS)                                                   \
	PLAIN_AS(unaligned_, SIZE, PLAIN_ACCESS)                                         \
	PLAIN_AS(volatile_, SIZE, VOLATILE_ACCESS)                                       \
	PLAIN_AS(unaligned_volatile_, SIZE, VOLATILE_ACCESS)                             \
	HIDDEN void __tsan_read_write##SIZE(void *a)                                     \
	{                                                                                \
		locklab_hooks.read(a, SIZE, PLAIN_ACCESS, SITE);                         \
		locklab_hooks.write(a, SIZE, PLAIN_ACCESS, SITE);                        \
	}
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

HIDDEN void __tsan_read_range(void *a, size_t n) { locklab_hooks.read(a, n, PLAIN_ACCESS, SITE); }
HIDDEN void __tsan_write_range(void *a, size_t n) { locklab_hooks.write(a, n, PLAIN_ACCESS, SITE); }
HIDDEN void __tsan_vptr_update(void **a, void *v)
{
	(void)v;
	locklab_hooks.write(a, sizeof *a, PLAIN_ACCESS, SITE);
}
HIDDEN void __tsan_vptr_read(void **a) { locklab_hooks.read(a, sizeof *a, PLAIN_ACCESS, SITE); }

#define UPDATE(BITS, NAME, OP)                                                            \
	ENTRY(__tsan_atomic##BITS##_##NAME)                                               \
	HIDDEN uint##BITS##_t BODY(__tsan_atomic##BITS##_##NAME)(                         \
		volatile uint##BITS##_t *a, uint##BITS##_t v, int order)                  \
	{                                                                                 \
		return (uint##BITS##_t)locklab_hooks.update(a, BITS / 8, OP, v, order, SITE); \
	}
#define ATOMIC(BITS)                                                                      \
	ENTRY(__tsan_atomic##BITS##_load)                                                 \
	HIDDEN uint##BITS##_t BODY(__tsan_atomic##BITS##_load)(                           \
		const volatile uint##BITS##_t *a, int order)                              \
	{                                                                                 \
		return (uint##BITS##_t)locklab_hooks.load(a, BITS / 8, order, SITE);      \
	}                                                                                 \
	ENTRY(__tsan_atomic##BITS##_store)                                                \
	HIDDEN void BODY(__tsan_atomic##BITS##_store)(volatile uint##BITS##_t *a,         \
						      uint##BITS##_t v, int order)        \
	{                                                                                 \
		locklab_hooks.store(a, BITS / 8, v, order, SITE);                         \
	}                                                                                 \
	UPDATE(BITS, exchange, EXCHANGE)                                                  \
	UPDATE(BITS, fetch_add, ADD)                                                      \
	UPDATE(BITS, fetch_sub, SUB)                                                      \
	UPDATE(BITS, fetch_and, AND)                                                      \
	UPDATE(BITS, fetch_or, OR)                                                        \
	UPDATE(BITS, fetch_xor, XOR)                                                      \
	UPDATE(BITS, fetch_nand, NAND)                                                    \
	ENTRY(__tsan_atomic##BITS##_compare_exchange_strong)                              \
	HIDDEN int BODY(__tsan_atomic##BITS##_compare_exchange_strong)(                         \
		volatile uint##BITS##_t *a, uint##BITS##_t *expected, uint##BITS##_t v,   \
		int success, int failure)                                                 \
	{                                                                                 \
		locklab_hooks.read(expected, BITS / 8, PLAIN_ACCESS, SITE);                             \
		uint##BITS##_t wanted = *expected;                                        \
		uint##BITS##_t old = (uint##BITS##_t)locklab_hooks.compare(               \
			a, BITS / 8, wanted, v, success, failure, SITE);                  \
		if (old == wanted)                                                        \
			return 1;                                                         \
		/* Other threads may see this memory. */                                   \
		locklab_hooks.write(expected, BITS / 8, PLAIN_ACCESS, SITE);                            \
		*expected = old;                                                          \
		return 0;                                                                 \
	}                                                                                 \
	ENTRY(__tsan_atomic##BITS##_compare_exchange_weak)                                \
	HIDDEN int BODY(__tsan_atomic##BITS##_compare_exchange_weak)(                     \
		volatile uint##BITS##_t *a, uint##BITS##_t *expected, uint##BITS##_t v,   \
		int success, int failure)                                                 \
	{                                                                                 \
		locklab_hooks.read(expected, BITS / 8, PLAIN_ACCESS, SITE);               \
		uint##BITS##_t wanted = *expected;                                        \
		uint##BITS##_t old = (uint##BITS##_t)locklab_hooks.compare(               \
			a, BITS / 8, wanted, v, success, failure | WEAK, SITE);           \
		if (old == wanted) {                                                      \
			int succeeded = !locklab_entered.failed;                          \
			locklab_entered.failed = 0;                                       \
			return succeeded;                                                 \
		}                                                                         \
		/* Other threads may see this memory. */                                  \
		locklab_hooks.write(expected, BITS / 8, PLAIN_ACCESS, SITE);              \
		*expected = old;                                                          \
		return 0;                                                                 \
	}                                                                                 \
	ENTRY(__tsan_atomic##BITS##_compare_exchange_val)                                 \
	HIDDEN uint##BITS##_t BODY(__tsan_atomic##BITS##_compare_exchange_val)(                 \
		volatile uint##BITS##_t *a, uint##BITS##_t expected, uint##BITS##_t v,    \
		int success, int failure)                                                 \
	{                                                                                 \
		return (uint##BITS##_t)locklab_hooks.compare(a, BITS / 8, expected, v,    \
							     success, failure, SITE);     \
	}
ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

HIDDEN void __tsan_atomic_thread_fence(int order) { locklab_hooks.fence(order, SITE); }
HIDDEN void __tsan_atomic_signal_fence(int order) { (void)order; }

/* Functions that compilers call for copies and clears. */
HIDDEN void *__tsan_memcpy(void *to, const void *from, size_t n);
HIDDEN void *memmove(void *to, const void *from, size_t n)
{
	volatile char *t = to;
	const volatile char *f = from;
	locklab_hooks.read(from, n, PLAIN_ACCESS, SITE);
	locklab_hooks.write(to, n, PLAIN_ACCESS, SITE);
	if (t <= f)
		for (size_t i = 0; i < n; i++)
			t[i] = f[i];
	else
		for (size_t i = n; i-- > 0;)
			t[i] = f[i];
	return to;
}
HIDDEN void *memcpy(void *to, const void *from, size_t n)
{
	volatile char *t = to;
	const volatile char *f = from;
	locklab_hooks.read(from, n, PLAIN_ACCESS, SITE);
	locklab_hooks.write(to, n, PLAIN_ACCESS, SITE);
	for (size_t i = 0; i < n; i++)
		t[i] = f[i];
	return to;
}
HIDDEN void *memset(void *to, int c, size_t n)
{
	volatile char *t = to;
	locklab_hooks.write(to, n, PLAIN_ACCESS, SITE);
	for (size_t i = 0; i < n; i++)
		t[i] = (char)c;
	return to;
}
HIDDEN void *__tsan_memcpy(void *to, const void *from, size_t n)
{
	return memcpy(to, from, n);
}
HIDDEN void *__tsan_memmove(void *to, const void *from, size_t n)
{
	return memmove(to, from, n);
}
HIDDEN void *__tsan_memset(void *to, int c, size_t n)
{
	return memset(to, c, n);
}

HIDDEN unsigned lab_cpu(void) { return locklab_hooks.cpu(); }
HIDDEN unsigned lab_node(void) { return locklab_hooks.node(); }

HIDDEN void __assert_fail(const char *text, const char *file, unsigned line, const char *function)
{
	(void)function;
	locklab_hooks.fail(text, file, line);
	__builtin_trap();
}
HIDDEN void abort(void)
{
	locklab_hooks.fail("abort()", "", 0);
	__builtin_trap();
}

HIDDEN int lab_futex_wait(const volatile void *word, unsigned expected)
{
	return locklab_hooks.futex_wait(word, expected, SITE);
}
HIDDEN int lab_futex_wake(const volatile void *word, unsigned count)
{
	return (int)locklab_hooks.futex_wake(word, count, SITE);
}

/* The calls of the system that are modelled: waits without a time-out, and wake-ups. */
HIDDEN long syscall(long number, ...)
{
	long arguments[6];
	va_list rest;
	va_start(rest, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(rest, long);
	va_end(rest);
	const volatile void *word = (const volatile void *)arguments[0];
	unsigned value = (unsigned)arguments[2];
	int all = (unsigned)arguments[5] == FUTEX_BITSET_MATCH_ANY;
	if (number == SYS_futex) {
		switch ((int)arguments[1] & ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)) {
		case FUTEX_WAIT_BITSET:
			if (!all)
				break;
			/* fallthrough */
		case FUTEX_WAIT:
			if (arguments[3])
				break;
			return locklab_hooks.futex_wait(word, value, SITE);
		case FUTEX_WAKE_BITSET:
			if (!all)
				break;
			/* fallthrough */
		case FUTEX_WAKE:
			return (long)locklab_hooks.futex_wake(word, value, SITE);
		}
	}
	locklab_hooks.refuse_call(number, number == SYS_futex ? arguments[1] : -1, SITE);
	__builtin_trap();
}

/* Gives the host the registers that a call preserves, and with the stack
 * above them all that the caller's loop can depend on beside memory. */
#if defined(__x86_64__)
__asm__(".text\n"
	".globl lab_relax\n"
	".hidden lab_relax\n"
	".type lab_relax, @function\n"
	"lab_relax:\n"
	".cfi_startproc\n"
	"	pushq %rbp\n	.cfi_adjust_cfa_offset 8\n"
	"	pushq %rbx\n	.cfi_adjust_cfa_offset 8\n"
	"	pushq %r12\n	.cfi_adjust_cfa_offset 8\n"
	"	pushq %r13\n	.cfi_adjust_cfa_offset 8\n"
	"	pushq %r14\n	.cfi_adjust_cfa_offset 8\n"
	"	pushq %r15\n	.cfi_adjust_cfa_offset 8\n"
	"	movq %rsp, %rdi\n"
	"	movl $56, %esi\n"
	"	movq 48(%rsp), %rdx\n"
	"	subq $8, %rsp\n	.cfi_adjust_cfa_offset 8\n"
	"	call locklab_relax\n"
	"	addq $56, %rsp\n	.cfi_adjust_cfa_offset -56\n"
	"	ret\n"
	".cfi_endproc\n"
	".size lab_relax, . - lab_relax\n");
HIDDEN void locklab_relax(void *frame, size_t bytes, void *site)
{
	locklab_hooks.relax(frame, bytes, site);
}
#else
/* No frame: such a loop never sleeps, which is slow but correct. */
HIDDEN void lab_relax(void) { locklab_hooks.relax(0, 0, SITE); }
#endif
