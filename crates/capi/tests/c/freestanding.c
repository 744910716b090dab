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
	__asm__ volatile("syscall" : : "a"(231L), "D"((long)check())
			 : "rcx", "r11", "memory");
	__builtin_unreachable();
}
