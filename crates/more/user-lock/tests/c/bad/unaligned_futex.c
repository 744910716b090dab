/* The word that is slept on is at an odd address. Expected: FAILS, with a sentence. */
#include <locklab_lock.h>
#include <stdatomic.h>
struct __attribute__((packed)) mutex { char before; _Atomic unsigned held; };
LOCKLAB_LOCK(unaligned_futex, struct mutex, lab_no_context);
void lab_lock(void *lock, void *ctx)
{
	struct mutex *m = lock; (void)ctx;
	while (atomic_exchange(&m->held, 2))
		lab_futex_wait(&m->held, 2);
}
void lab_unlock(void *lock, void *ctx)
{
	struct mutex *m = lock; (void)ctx;
	if (atomic_exchange(&m->held, 0) == 2)
		lab_futex_wake(&m->held, 1);
}
