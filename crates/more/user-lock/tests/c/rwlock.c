/* A reader-writer lock in one word: the lowest bit is the writer's, the others
 * count the readers. Whoever finds it free takes it; so writers may starve.
 * -DUNFENCED: a reader leaves by a relaxed operation. -DBESIDE: a reader does not
 * look whether a writer is inside. */
#include <locklab_lock.h>
#include <stdatomic.h>

enum { WRITER = 1, READER = 2 };
struct rwlock {
	_Atomic unsigned state;
};
LOCKLAB_LOCK(rwlock, struct rwlock, lab_no_context);

#ifdef UNFENCED
#define LEAVE memory_order_relaxed
#else
#define LEAVE memory_order_release
#endif
#ifdef BESIDE
#define CLOSED 0
#else
#define CLOSED WRITER
#endif

static int take(struct rwlock *l)
{
	unsigned free = 0;
	return atomic_compare_exchange_strong_explicit(&l->state, &free, WRITER,
						       memory_order_acquire,
						       memory_order_relaxed);
}

void lab_lock(void *lock, void *ctx)
{
	struct rwlock *l = lock;
	(void)ctx;
	while (!take(l))
		while (atomic_load_explicit(&l->state, memory_order_relaxed) != 0)
			lab_relax();
}

int lab_trylock(void *lock, void *ctx)
{
	(void)ctx;
	return take(lock);
}

void lab_unlock(void *lock, void *ctx)
{
	(void)ctx;
	atomic_fetch_sub_explicit(&((struct rwlock *)lock)->state, WRITER,
				  memory_order_release);
}

/* Enters beside readers, unless a writer is inside. */
static int enter(struct rwlock *l)
{
	unsigned state = atomic_load_explicit(&l->state, memory_order_relaxed);
	while (!(state & CLOSED))
		if (atomic_compare_exchange_weak_explicit(&l->state, &state, state + READER,
							  memory_order_acquire,
							  memory_order_relaxed))
			return 1;
	return 0;
}

void lab_read_lock(void *lock, void *ctx)
{
	struct rwlock *l = lock;
	(void)ctx;
	while (!enter(l))
		while (atomic_load_explicit(&l->state, memory_order_relaxed) & WRITER)
			lab_relax();
}

int lab_read_trylock(void *lock, void *ctx)
{
	(void)ctx;
	return enter(lock);
}

void lab_read_unlock(void *lock, void *ctx)
{
	(void)ctx;
	atomic_fetch_sub_explicit(&((struct rwlock *)lock)->state, READER, LEAVE);
}

int lab_is_locked(const void *lock)
{
	struct rwlock *l = (struct rwlock *)lock;
	return atomic_load_explicit(&l->state, memory_order_relaxed) != 0;
}
