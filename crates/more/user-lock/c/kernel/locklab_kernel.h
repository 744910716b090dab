/* The interfaces that the lock code of a Linux kernel uses, for a lock that is
 * compiled alone: atomics, barriers, per-CPU data, CPU numbers. Written from
 * the documentation of these interfaces (Documentation/atomic_t.txt,
 * memory-barriers.txt, this_cpu_ops.rst); no code of the kernel is in here.
 *
 * How the checker treats the kernel's orderings: C11 has no address
 * dependencies, so the access that heads one (a relaxed read of a pointer, a
 * relaxed exchange) is an Acquire, unless LOCKLAB_STRICT is defined; and a
 * read-modify-write that is a full barrier has one before and one behind it.
 */
#ifndef LOCKLAB_KERNEL_H
#define LOCKLAB_KERNEL_H

#include <locklab_lock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef struct { int counter; } atomic_t;
typedef struct { long counter; } atomic_long_t;

#define CONFIG_SMP 1
#ifdef LOCKLAB_CHECKER
#define CONFIG_NR_CPUS 4
#else
#define CONFIG_NR_CPUS 512
#endif
#define NR_CPUS CONFIG_NR_CPUS
#define IS_ENABLED(option) 0
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#ifndef __LITTLE_ENDIAN
#define __LITTLE_ENDIAN 1234
#endif
#endif

/* The compiler. */
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define noinline __attribute__((noinline))
#undef __pure
#define __pure __attribute__((pure))
#define __maybe_unused __attribute__((unused))
#define __aligned(bytes) __attribute__((aligned(bytes)))
#define ____cacheline_aligned __aligned(64)
#define ____cacheline_aligned_in_smp __aligned(64)
#define __lockfunc
#define __init
#define __read_mostly
#define notrace
#define asmlinkage
#define __visible
#define __percpu
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define EXPORT_SYMBOL(name)
#define EXPORT_SYMBOL_GPL(name)
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
#define BUG_ON(condition) do { if (condition) __builtin_trap(); } while (0)
#define WARN_ON_ONCE(condition) (!!(condition))
#define WARN_ON(condition) (!!(condition))

/* An access that heads an address dependency. */
#ifdef LOCKLAB_STRICT
#define LOCKLAB_DEPENDED_ON __ATOMIC_RELAXED
#else
#define LOCKLAB_DEPENDED_ON __ATOMIC_CONSUME /* for the checker an Acquire */
#endif
#define LOCKLAB_IS_POINTER(x) (__builtin_classify_type(x) == 5)

#define READ_ONCE(x)                                                              \
	__atomic_load_n(&(x), LOCKLAB_IS_POINTER(x) ? LOCKLAB_DEPENDED_ON : __ATOMIC_RELAXED)
#define WRITE_ONCE(x, value) __atomic_store_n(&(x), (value), __ATOMIC_RELAXED)
#define smp_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define smp_store_release(p, value) __atomic_store_n((p), (value), __ATOMIC_RELEASE)
#define smp_mb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define smp_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)
#define smp_acquire__after_ctrl_dep() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define smp_mb__before_atomic() smp_mb()
#define smp_mb__after_atomic() smp_mb()
#define smp_mb__after_spinlock() smp_mb()
#define cpu_relax() lab_relax()

#define smp_cond_load_acquire(p, condition) LOCKLAB_COND_LOAD(p, condition, __ATOMIC_ACQUIRE)
#define smp_cond_load_relaxed(p, condition)                                       \
	LOCKLAB_COND_LOAD(p, condition,                                           \
			  LOCKLAB_IS_POINTER(*(p)) ? LOCKLAB_DEPENDED_ON : __ATOMIC_RELAXED)
#define LOCKLAB_COND_LOAD(p, condition, order)                                    \
	({                                                                        \
		__typeof__(p) locklab_p = (p);                                    \
		__typeof__(*(p)) VAL;                                             \
		for (;;) {                                                        \
			VAL = __atomic_load_n(locklab_p, order);                  \
			if (condition)                                            \
				break;                                            \
			cpu_relax();                                              \
		}                                                                 \
		VAL;                                                              \
	})

/* Read-modify-writes. Those that return a value and name no order are full
 * barriers: the locked instruction is one on x86, and the checker gets fences. */
#ifdef LOCKLAB_CHECKER
#define LOCKLAB_FULL() smp_mb()
#else
#define LOCKLAB_FULL() ((void)0)
#endif
#define LOCKLAB_FULLY(operation)                                                  \
	({                                                                        \
		LOCKLAB_FULL();                                                   \
		__typeof__(operation) locklab_result = (operation);               \
		LOCKLAB_FULL();                                                   \
		locklab_result;                                                   \
	})
#define LOCKLAB_XCHG(p, value, order)                                             \
	__atomic_exchange_n((p), (__typeof__(*(p)))(value), order)
#define LOCKLAB_CMPXCHG(p, old, new, success, failure)                            \
	({                                                                        \
		__typeof__(*(p)) locklab_old = (old);                             \
		__atomic_compare_exchange_n((p), &locklab_old, (new), 0, success, failure); \
		locklab_old;                                                      \
	})
#define LOCKLAB_TRY_CMPXCHG(p, old, new, success)                                 \
	__atomic_compare_exchange_n((p), (__typeof__(p))(old), (new), 0, success, __ATOMIC_RELAXED)

#define xchg(p, value) LOCKLAB_FULLY(LOCKLAB_XCHG(p, value, __ATOMIC_ACQ_REL))
#define xchg_acquire(p, value) LOCKLAB_XCHG(p, value, __ATOMIC_ACQUIRE)
#define xchg_release(p, value) LOCKLAB_XCHG(p, value, __ATOMIC_RELEASE)
#define xchg_relaxed(p, value) LOCKLAB_XCHG(p, value, LOCKLAB_DEPENDED_ON)
#define cmpxchg(p, old, new)                                                      \
	LOCKLAB_FULLY(LOCKLAB_CMPXCHG(p, old, new, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
#define cmpxchg_acquire(p, old, new)                                              \
	LOCKLAB_CMPXCHG(p, old, new, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
#define cmpxchg_release(p, old, new)                                              \
	LOCKLAB_CMPXCHG(p, old, new, __ATOMIC_RELEASE, __ATOMIC_RELAXED)
#define cmpxchg_relaxed(p, old, new)                                              \
	LOCKLAB_CMPXCHG(p, old, new, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#define try_cmpxchg(p, old, new)                                                  \
	LOCKLAB_FULLY(LOCKLAB_TRY_CMPXCHG(p, old, new, __ATOMIC_ACQ_REL))
#define try_cmpxchg_acquire(p, old, new) LOCKLAB_TRY_CMPXCHG(p, old, new, __ATOMIC_ACQUIRE)
#define try_cmpxchg_release(p, old, new) LOCKLAB_TRY_CMPXCHG(p, old, new, __ATOMIC_RELEASE)
#define try_cmpxchg_relaxed(p, old, new) LOCKLAB_TRY_CMPXCHG(p, old, new, __ATOMIC_RELAXED)

#define ATOMIC_INIT(i) { (i) }
#define atomic_read(v) __atomic_load_n(&(v)->counter, __ATOMIC_RELAXED)
#define atomic_read_acquire(v) __atomic_load_n(&(v)->counter, __ATOMIC_ACQUIRE)
#define atomic_set(v, i) __atomic_store_n(&(v)->counter, (i), __ATOMIC_RELAXED)
#define atomic_set_release(v, i) __atomic_store_n(&(v)->counter, (i), __ATOMIC_RELEASE)
#define atomic_cond_read_acquire(v, c) smp_cond_load_acquire(&(v)->counter, (c))
#define atomic_cond_read_relaxed(v, c) smp_cond_load_relaxed(&(v)->counter, (c))
#define atomic_xchg(v, i) xchg(&(v)->counter, i)
#define atomic_xchg_acquire(v, i) xchg_acquire(&(v)->counter, i)
#define atomic_xchg_relaxed(v, i) xchg_relaxed(&(v)->counter, i)
#define atomic_cmpxchg(v, old, new) cmpxchg(&(v)->counter, old, new)
#define atomic_cmpxchg_acquire(v, old, new) cmpxchg_acquire(&(v)->counter, old, new)
#define atomic_cmpxchg_release(v, old, new) cmpxchg_release(&(v)->counter, old, new)
#define atomic_cmpxchg_relaxed(v, old, new) cmpxchg_relaxed(&(v)->counter, old, new)
#define atomic_try_cmpxchg(v, old, new) try_cmpxchg(&(v)->counter, old, new)
#define atomic_try_cmpxchg_acquire(v, old, new) try_cmpxchg_acquire(&(v)->counter, old, new)
#define atomic_try_cmpxchg_release(v, old, new) try_cmpxchg_release(&(v)->counter, old, new)
#define atomic_try_cmpxchg_relaxed(v, old, new) try_cmpxchg_relaxed(&(v)->counter, old, new)
#define atomic_add(i, v) ((void)__atomic_fetch_add(&(v)->counter, (i), __ATOMIC_RELAXED))
#define atomic_sub(i, v) ((void)__atomic_fetch_sub(&(v)->counter, (i), __ATOMIC_RELAXED))
#define atomic_inc(v) atomic_add(1, v)
#define atomic_dec(v) atomic_sub(1, v)
#define atomic_or(i, v) ((void)__atomic_fetch_or(&(v)->counter, (i), __ATOMIC_RELAXED))
#define atomic_and(i, v) ((void)__atomic_fetch_and(&(v)->counter, (i), __ATOMIC_RELAXED))
#define atomic_andnot(i, v) ((void)__atomic_fetch_and(&(v)->counter, ~(i), __ATOMIC_RELAXED))
#define atomic_fetch_add(i, v)                                                    \
	LOCKLAB_FULLY(__atomic_fetch_add(&(v)->counter, (i), __ATOMIC_ACQ_REL))
#define atomic_fetch_add_acquire(i, v) __atomic_fetch_add(&(v)->counter, (i), __ATOMIC_ACQUIRE)
#define atomic_fetch_add_relaxed(i, v) __atomic_fetch_add(&(v)->counter, (i), __ATOMIC_RELAXED)
#define atomic_fetch_or(i, v)                                                     \
	LOCKLAB_FULLY(__atomic_fetch_or(&(v)->counter, (i), __ATOMIC_ACQ_REL))
#define atomic_fetch_or_acquire(i, v) __atomic_fetch_or(&(v)->counter, (i), __ATOMIC_ACQUIRE)
#define atomic_fetch_andnot_acquire(i, v)                                         \
	__atomic_fetch_and(&(v)->counter, ~(i), __ATOMIC_ACQUIRE)

/* CPUs and per-CPU data: a section that is copied for every CPU before the lock
 * is first used. */
#define smp_processor_id() ((int)lab_cpu())
#define raw_smp_processor_id() ((int)lab_cpu())
#define numa_node_id() ((int)lab_node())
#define LOCKLAB_PER_CPU_BYTES 256
#define LOCKLAB_PER_CPU __attribute__((section("locklab_percpu"), used))
#define DEFINE_PER_CPU(type, name) LOCKLAB_PER_CPU __typeof__(type) name
#define DEFINE_PER_CPU_ALIGNED(type, name) LOCKLAB_PER_CPU __aligned(64) __typeof__(type) name
#define DEFINE_PER_CPU_SHARED_ALIGNED(type, name) DEFINE_PER_CPU_ALIGNED(type, name)
#define DECLARE_PER_CPU(type, name) extern __typeof__(type) name
#define DECLARE_PER_CPU_ALIGNED(type, name) DECLARE_PER_CPU(type, name)

extern char __start_locklab_percpu[] __attribute__((weak, visibility("hidden")));
extern char __stop_locklab_percpu[] __attribute__((weak, visibility("hidden")));
static __aligned(64) char locklab_per_cpu[NR_CPUS][LOCKLAB_PER_CPU_BYTES];

static inline void *locklab_of_cpu(const volatile void *p, unsigned cpu)
{
	return locklab_per_cpu[cpu] + ((const volatile char *)p - __start_locklab_percpu);
}
#define per_cpu_ptr(p, cpu) ((__typeof__(p))locklab_of_cpu((p), (unsigned)(cpu)))
#define this_cpu_ptr(p) per_cpu_ptr(p, lab_cpu())
#define raw_cpu_ptr(p) this_cpu_ptr(p)
#define per_cpu(name, cpu) (*per_cpu_ptr(&(name), cpu))
#define this_cpu_read(name) (*this_cpu_ptr(&(name)))
#define this_cpu_inc(name) ((*this_cpu_ptr(&(name)))++)
#define this_cpu_dec(name) ((*this_cpu_ptr(&(name)))--)
#define __this_cpu_read(name) this_cpu_read(name)
#define __this_cpu_inc(name) this_cpu_inc(name)
#define __this_cpu_dec(name) this_cpu_dec(name)

static inline void locklab_copy_per_cpu(void)
{
	size_t bytes = (size_t)(__stop_locklab_percpu - __start_locklab_percpu);
	if (bytes > LOCKLAB_PER_CPU_BYTES)
		__builtin_trap();
	for (unsigned cpu = 0; cpu < NR_CPUS; cpu++)
		for (size_t i = 0; i < bytes; i++)
			locklab_per_cpu[cpu][i] = __start_locklab_percpu[i];
}

/* A hint that changes no value, and is not modelled. */
#define prefetchw(p) ((void)(p))
#define prefetch(p) ((void)(p))

/* Tracing and statistics, which a build may leave out. */
#define LCB_F_SPIN 0
#define trace_contention_begin(lock, flags) ((void)(lock))
#define trace_contention_end(lock, result) ((void)(lock))
#define kcsan_release() ((void)0)
#define lockdep_assert_preemption_disabled() ((void)0)

#endif
