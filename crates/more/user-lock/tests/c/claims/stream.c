/* A reader-writer lock in one word whose writer waits until nobody reads, so that readers
 * who come again and again starve it. -DFAIR: it says first that it waits, and then no
 * reader comes in. It claims that none does. */
#include <locklab_lock.h>
#include <stdatomic.h>

enum { WRITER = 1 << 16 };
struct lock {
	_Atomic int word;
};
LOCKLAB_LOCK(stream, struct lock, lab_no_context);
LOCKLAB_READERS_PASS(0);

void lab_read_lock(void *lock, void *ctx)
{
	struct lock *l = lock;
	(void)ctx;
	for (;;) {
		int seen = atomic_load_explicit(&l->word, memory_order_relaxed);
		if (!(seen & WRITER) &&
		    atomic_compare_exchange_strong_explicit(&l->word, &seen, seen + 1,
							    memory_order_acquire,
							    memory_order_relaxed))
			return;
		lab_relax();
	}
}

void lab_read_unlock(void *lock, void *ctx)
{
	(void)ctx;
	atomic_fetch_sub_explicit(&((struct lock *)lock)->word, 1, memory_order_release);
}

void lab_lock(void *lock, void *ctx)
{
	struct lock *l = lock;
	(void)ctx;
#ifdef FAIR
	while (atomic_fetch_or_explicit(&l->word, WRITER, memory_order_acquire) & WRITER)
		lab_relax();
	while (atomic_load_explicit(&l->word, memory_order_acquire) != WRITER)
		lab_relax();
#else
	int free = 0;
	while (!atomic_compare_exchange_strong_explicit(&l->word, &free, WRITER,
							memory_order_acquire,
							memory_order_relaxed)) {
		free = 0;
		lab_relax();
	}
#endif
}

void lab_unlock(void *lock, void *ctx)
{
	(void)ctx;
	atomic_fetch_sub_explicit(&((struct lock *)lock)->word, WRITER, memory_order_release);
}
