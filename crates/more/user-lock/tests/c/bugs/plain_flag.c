/* A lock whose flag is read and released by plain accesses. On every processor
 * the fence makes it work; in C it is a data race, and a compiler may keep the
 * flag in a register. With FIXED the accesses are atomic; with VOLATILE they
 * are as older code has them. */
#include <locklab_lock.h>

struct flag {
#ifdef VOLATILE
	volatile int held;
#else
	int held;
#endif
};
LOCKLAB_LOCK(plain_flag, struct flag, lab_no_context);

void lab_lock(void *lock, void *ctx)
{
	struct flag *l = lock;
	(void)ctx;
	while (__atomic_exchange_n(&l->held, 1, __ATOMIC_ACQUIRE))
#ifdef FIXED
		while (__atomic_load_n(&l->held, __ATOMIC_RELAXED))
#else
		while (l->held)
#endif
			lab_relax();
}

void lab_unlock(void *lock, void *ctx)
{
	struct flag *l = lock;
	(void)ctx;
	__atomic_thread_fence(__ATOMIC_RELEASE);
#ifdef FIXED
	__atomic_store_n(&l->held, 0, __ATOMIC_RELAXED);
#else
	l->held = 0;
#endif
}
