/* Initialisers, version, and what only some locks can do. C89 comments and
 * declarations only, so that -std=gnu89 -pedantic takes the headers. */
#include "locklab_inline.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static locklab_ticket_t ticket = LOCKLAB_TICKET_INIT;
static locklab_qspinlock_t qspinlock = LOCKLAB_QSPINLOCK_INIT;
static locklab_mcs_t mcs = LOCKLAB_MCS_INIT;

#define CHECK(what)                                                \
	do {                                                       \
		if (!(what)) {                                     \
			printf("%s: not so: %s\n", name, #what);   \
			exit(1);                                   \
		}                                                  \
	} while (0)

static void *aligned(size_t align, size_t size)
{
	char *place = (char *)malloc(size + align);
	size_t past = (size_t)place & (align - 1);

	return place + (align - past);
}

static void timed(const locklab_type_t *type, void *lock, void *ours,
		  void *theirs)
{
	const char *name = type->name;

	type->lock(lock, ours);
	CHECK(!type->lock_until(lock, theirs, locklab_now() + 1000000));
	type->unlock(lock, ours);
	CHECK(!type->context_is_idle || type->context_is_idle(theirs));
	CHECK(type->lock_until(lock, theirs, locklab_now() + 1000000));
	type->unlock(lock, theirs);
}

static void shared(const locklab_type_t *type, void *lock, void *ours)
{
	const char *name = type->name;

	type->read_lock(lock);
	CHECK(type->try_read_lock(lock));
	CHECK(!type->try_lock(lock, ours));
	type->read_unlock(lock);
	type->read_unlock(lock);
	type->lock(lock, ours);
	CHECK(!type->try_read_lock(lock));
	type->downgrade(lock);
	CHECK(type->try_read_lock(lock));
	type->read_unlock(lock);
	type->read_unlock(lock);
}

static void recursive(const locklab_type_t *type, void *lock, void *ours)
{
	const char *name = type->name;

	CHECK(!type->held(lock));
	type->lock(lock, ours);
	type->lock(lock, ours);
	CHECK(type->held(lock));
	CHECK(type->release_all(lock) == 2);
	CHECK(!type->held(lock));
	type->acquire_count(lock, 3);
	CHECK(type->release_all(lock) == 3);
}

int main(void)
{
	const char *name = "typed";
	size_t n, sharing = 0, giving_up = 0, again = 0;
	locklab_mcs_node_t node = LOCKLAB_MCS_NODE_INIT;

	CHECK(locklab_version() == LOCKLAB_VERSION);
	locklab_ticket_lock_inline(&ticket);
	locklab_ticket_unlock_inline(&ticket);
	locklab_qspinlock_lock_inline(&qspinlock);
	locklab_qspinlock_unlock_inline(&qspinlock);
	locklab_mcs_lock_inline(&mcs, &node);
	locklab_mcs_unlock_inline(&mcs, &node);

	for (n = 0; n < locklab_count(); n++) {
		const locklab_type_t *type = locklab_at(n);
		void *lock = aligned(type->align, type->size);
		void *ours = aligned(type->context_align, type->context_size);
		void *theirs = aligned(type->context_align, type->context_size);

		name = type->name;
		type->init(lock);
		type->init_context(ours);
		type->init_context(theirs);
		CHECK(type->is_locked(lock) <= 0);
		type->lock(lock, ours);
		CHECK(type->is_locked(lock) != 0);
		type->unlock(lock, ours);
		if (type->lock_until) {
			giving_up++;
			timed(type, lock, ours, theirs);
		}
		if (type->read_lock) {
			sharing++;
			shared(type, lock, ours);
		}
		CHECK(!type->recursive == !type->release_all);
		if (type->release_all) {
			again++;
			recursive(type, lock, ours);
		}
	}
	name = "all";
	CHECK(giving_up >= 7 && sharing >= 3 && again >= 5);
	return 0;
}
