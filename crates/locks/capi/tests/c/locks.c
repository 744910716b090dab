/* Threads on every lock: typed, inline and by name. C11 and C++17. */
#include "locklab_inline.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 3, TURNS = 400 };

static locklab_ticket_t ticket;
static locklab_qspinlock_t qspinlock;
static locklab_mcs_t mcs;

static const locklab_type_t *type; /* lock under test, by name */
static void *lock;
static volatile long counts[2]; /* differ if two are inside */
static volatile int broken;

static void inside(void)
{
	if (counts[0] != counts[1])
		broken = 1;
	counts[0] = counts[0] + 1;
	counts[1] = counts[1] + 1;
}

/* Inline and called forms mixed on one lock. */
#define TYPED(name, ...)                                              \
	static void *typed_##name(void *unused)                       \
	{                                                             \
		locklab_mcs_node_t node;                              \
                                                                      \
		(void)unused;                                         \
		(void)node;                                           \
		for (int i = 0; i < TURNS; i++) {                     \
			if (i & 1)                                    \
				locklab_##name##_lock_inline(__VA_ARGS__); \
			else                                          \
				locklab_##name##_lock(__VA_ARGS__);   \
			inside();                                     \
			if (i & 2)                                    \
				locklab_##name##_unlock_inline(__VA_ARGS__); \
			else                                          \
				locklab_##name##_unlock(__VA_ARGS__); \
		}                                                     \
		return NULL;                                          \
	}

TYPED(ticket, &ticket)
TYPED(qspinlock, &qspinlock)
TYPED(mcs, &mcs, &node)

static void *by_name(void *context)
{
	for (int i = 0; i < TURNS; i++) {
		type->lock(lock, context);
		inside();
		type->unlock(lock, context);
	}
	return NULL;
}

static void run(const char *name, void *(*body)(void *), void **contexts,
		long expected)
{
	pthread_t threads[THREADS];

	counts[0] = counts[1] = 0;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, body,
				   contexts ? contexts[i] : NULL))
			abort();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (broken || counts[0] != expected || counts[1] != expected) {
		printf("%s: %ld and %ld, not %ld\n", name, counts[0], counts[1],
		       expected);
		exit(1);
	}
}

static void *aligned(size_t align, size_t size)
{
	void *place = NULL;

	if (size == 0)
		return NULL;
	if (posix_memalign(&place, align < 8 ? 8 : align, size))
		abort();
	memset(place, 0xa5, size); /* init must not rely on zeroes */
	return place;
}

int main(void)
{
	locklab_mcs_node_t node;

	run("ticket", typed_ticket, NULL, (long)THREADS * TURNS);
	run("qspinlock", typed_qspinlock, NULL, (long)THREADS * TURNS);
	run("mcs", typed_mcs, NULL, (long)THREADS * TURNS);
	if (!locklab_ticket_trylock_inline(&ticket) ||
	    locklab_ticket_trylock(&ticket) ||
	    !locklab_qspinlock_trylock_inline(&qspinlock) ||
	    locklab_qspinlock_trylock(&qspinlock) ||
	    !locklab_mcs_trylock_inline(&mcs, &node)) {
		puts("trylock: wrong answer");
		return 1;
	}
	locklab_ticket_unlock_inline(&ticket);
	locklab_qspinlock_unlock_inline(&qspinlock);
	locklab_mcs_unlock_inline(&mcs, &node);

	if (locklab_find("no-such-lock") || !locklab_count() ||
	    locklab_at(locklab_count())) {
		puts("find: wrong answer");
		return 1;
	}
	for (size_t n = 0; n < locklab_count(); n++) {
		void *contexts[THREADS];

		type = locklab_at(n);
		if (!type || locklab_find(type->name) != type)
			return 1;
		lock = aligned(type->align, type->size);
		type->init(lock);
		for (int i = 0; i < THREADS; i++) {
			contexts[i] = aligned(type->context_align,
					      type->context_size);
			type->init_context(contexts[i]);
		}
		run(type->name, by_name, contexts, (long)THREADS * TURNS);
		for (int i = 0; i < THREADS; i++)
			free(contexts[i]);
		free(lock);
	}
	printf("%zu locks\n", locklab_count());
	return 0;
}
