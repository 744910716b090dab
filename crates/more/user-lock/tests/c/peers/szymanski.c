/* A waiting room with a door, by loads and stores (B. Szymanski, "A simple solution to
 * Lamport's concurrent programming problem with linear wait", ICS 1988); each access is
 * sequentially consistent. */
#include "orders.h"

enum { OUTSIDE, WANTS, WAITS, IN_THE_DOOR, INSIDE };
#define CPUS 3
struct lock {
	_Atomic int at[CPUS];
};
LOCKLAB_LOCK(szymanski, struct lock, lab_no_context);
LOCKLAB_CPUS(CPUS);
LOCKLAB_NO_INTERRUPTS();

void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock;
	int me = (int)lab_cpu(), other;
	(void)ctx;
	atomic_store(&l->at[me], WANTS);
	for (other = 0; other < CPUS; other++)
		while (atomic_load(&l->at[other]) >= IN_THE_DOOR)
			lab_relax();
	atomic_store(&l->at[me], IN_THE_DOOR);
	for (other = 0; other < CPUS; other++)
		if (other != me && atomic_load(&l->at[other]) == WANTS)
			break;
	if (other < CPUS) {
		atomic_store(&l->at[me], WAITS);
		for (other = 0;; other = (other + 1) % CPUS) {
			if (atomic_load(&l->at[other]) == INSIDE)
				break;
			if (other == CPUS - 1)
				lab_relax();
		}
	}
	atomic_store(&l->at[me], INSIDE);
	for (other = 0; other < me; other++)
		while (atomic_load(&l->at[other]) >= WAITS)
			lab_relax();
}

void lab_unlock(void *lock, void *ctx)
{
	struct lock *l = lock;
	int me = (int)lab_cpu(), other;
	(void)ctx;
	for (other = me + 1; other < CPUS; other++)
		for (;;) {
			int at = atomic_load(&l->at[other]);
			if (at != WAITS && at != IN_THE_DOOR)
				break;
			lab_relax();
		}
	atomic_store(&l->at[me], OUTSIDE);
}
