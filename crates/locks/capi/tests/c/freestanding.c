/* A kernel's use: no libc, no start files; the embedder names its CPU. */
#include "locklab_inline.h"

static locklab_queue_nodes_t nodes[1];

uint32_t locklab_host_cpu(void)
{
	return 0;
}

locklab_queue_nodes_t *locklab_host_queue_nodes(uint32_t cpu)
{
	return &nodes[cpu];
}

static locklab_ticket_t ticket;
static locklab_qspinlock_t qspinlock;
static locklab_mcs_t mcs;

/* Time of the host: one tick each time that it is asked for. */
static uint64_t ticks;

static uint64_t now(void)
{
	return ++ticks;
}

static const locklab_host_t host = { .now = now };

/* The host's time, for as long as it is given. */
static int check_host(void)
{
	int failed = locklab_now() != 0;

	locklab_set_host(&host);
	failed |= locklab_now() != 1 || locklab_now() != 2;
	locklab_set_host((void *)0);
	failed |= locklab_now() != 0;
	return failed;
}

/* Exit status 0 if every lock can be taken, excludes, and is free again. */
static int check(void)
{
	locklab_mcs_node_t node, other;
	int failed = 0;

	locklab_ticket_lock_inline(&ticket);
	failed |= locklab_ticket_trylock_inline(&ticket);
	locklab_ticket_unlock(&ticket);
	failed |= !locklab_ticket_trylock(&ticket);

	locklab_qspinlock_lock_inline(&qspinlock);
	failed |= locklab_qspinlock_trylock_inline(&qspinlock);
	locklab_qspinlock_unlock_inline(&qspinlock);
	failed |= qspinlock.word != 0;

	locklab_mcs_lock_inline(&mcs, &node);
	failed |= locklab_mcs_trylock(&mcs, &other);
	locklab_mcs_unlock_inline(&mcs, &node);
	failed |= mcs.tail != (void *)0;
	return failed;
}

__attribute__((force_align_arg_pointer)) void _start(void)
{
	__asm__ volatile("syscall" : : "a"(231L), "D"((long)(check() | check_host()))
			 : "rcx", "r11", "memory");
	__builtin_unreachable();
}
