/* Two flags and no turn, waited for without a pause: both wait for ever. */
#include <locklab_lock.h>
#include <stdatomic.h>
struct lock { _Atomic int flag[2]; };
LOCKLAB_LOCK(both_wait, struct lock, lab_no_context);
LOCKLAB_CPUS(2);
void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock; int me = lab_cpu() & 1; (void)ctx;
	atomic_store(&l->flag[me], 1);
	while (atomic_load(&l->flag[!me]))
		;
}
void lab_unlock(void *lock, void *ctx)
{
	(void)ctx;
	atomic_store(&((struct lock *)lock)->flag[lab_cpu() & 1], 0);
}
