/* Two threads, by loads and stores, the first mutual exclusion in software (T. Dekker).
 * -DACQ2RX: each store and load is relaxed, and nothing keeps a store before a later load. */
#include "orders.h"

#ifdef ACQ2RX
#define ORDER memory_order_relaxed
#else
#define ORDER memory_order_seq_cst
#endif
struct lock {
	_Atomic int wants[2], turn;
};
LOCKLAB_LOCK(dekker, struct lock, lab_no_context);
LOCKLAB_CPUS(2);

void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock;
	int me = (int)lab_cpu();
	(void)ctx;
	atomic_store_explicit(&l->wants[me], 1, ORDER);
	while (atomic_load_explicit(&l->wants[1 - me], ORDER)) {
		if (atomic_load_explicit(&l->turn, ORDER) == me) {
			lab_relax();
			continue;
		}
		atomic_store_explicit(&l->wants[me], 0, ORDER);
		while (atomic_load_explicit(&l->turn, ORDER) != me)
			lab_relax();
		atomic_store_explicit(&l->wants[me], 1, ORDER);
	}
}

void lab_unlock(void *lock, void *ctx)
{
	struct lock *l = lock;
	int me = (int)lab_cpu();
	(void)ctx;
	atomic_store_explicit(&l->turn, 1 - me, memory_order_release);
	atomic_store_explicit(&l->wants[me], 0, memory_order_release);
}
