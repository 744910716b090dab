/* The inline fast paths against the calls: from each word, the same answer and
 * the same word. The calls are the locks that the model checker has seen. */
#include "locklab_inline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As assert, which NDEBUG would take away. */
#define CHECK(what)                                                           \
	do {                                                                  \
		if (!(what)) {                                                \
			printf("%s:%d: word %#lx: %s\n", __FILE__, __LINE__,  \
			       (unsigned long)start, #what);                  \
			exit(1);                                              \
		}                                                             \
	} while (0)

/* Two copies of a lock, one for the inline path and one for the call. */
static void words(uint32_t start)
{
	locklab_ticket_t ticket[2] = { { start }, { start } };
	locklab_qspinlock_t queued[2] = { { start }, { start } };

	CHECK(locklab_ticket_trylock_inline(&ticket[0]) ==
	      locklab_ticket_trylock(&ticket[1]));
	CHECK(ticket[0].word == ticket[1].word);
	ticket[0].word = ticket[1].word = start;
	locklab_ticket_unlock_inline(&ticket[0]);
	locklab_ticket_unlock(&ticket[1]);
	CHECK(ticket[0].word == ticket[1].word);
	/* A free lock: both halves are the same, and nobody waits. */
	ticket[0].word = ticket[1].word = (start & 0xffff) * 0x10001u;
	locklab_ticket_lock_inline(&ticket[0]);
	locklab_ticket_lock(&ticket[1]);
	CHECK(ticket[0].word == ticket[1].word);
	CHECK((uint16_t)ticket[0].word == (uint16_t)start);
	CHECK((uint16_t)(ticket[0].word >> 16) == (uint16_t)(start + 1));

	CHECK(locklab_qspinlock_trylock_inline(&queued[0]) ==
	      locklab_qspinlock_trylock(&queued[1]));
	CHECK(queued[0].word == queued[1].word);
	queued[0].word = queued[1].word = start;
	locklab_qspinlock_unlock_inline(&queued[0]);
	locklab_qspinlock_unlock(&queued[1]);
	CHECK(queued[0].word == queued[1].word);
	queued[0].word = queued[1].word = 0;
	locklab_qspinlock_lock_inline(&queued[0]);
	locklab_qspinlock_lock(&queued[1]);
	CHECK(queued[0].word == queued[1].word);
}

/* A node as an earlier acquisition may have left it. */
static locklab_mcs_node_t used(void *next, uint32_t granted)
{
	locklab_mcs_node_t node;

	memset(&node, 0, sizeof node);
	node.next = next;
	node.granted = granted;
	return node;
}

static void queue(uint32_t start)
{
	locklab_mcs_node_t stranger = used(NULL, 0);
	locklab_mcs_node_t node[2], next[2];
	locklab_mcs_t lock[2] = { { NULL }, { NULL } };
	int i;

	/* Free: by lock and by trylock. */
	for (i = 0; i < 2; i++)
		node[i] = used(&stranger, start);
	locklab_mcs_lock_inline(&lock[0], &node[0]);
	locklab_mcs_lock(&lock[1], &node[1]);
	for (i = 0; i < 2; i++) {
		CHECK(lock[i].tail == &node[i]);
		CHECK(node[i].next == NULL);
		next[i] = used(&stranger, start);
	}
	CHECK(node[0].granted == node[1].granted);
	/* Held. */
	CHECK(!locklab_mcs_trylock_inline(&lock[0], &next[0]));
	CHECK(!locklab_mcs_trylock(&lock[1], &next[1]));
	for (i = 0; i < 2; i++) {
		CHECK(lock[i].tail == &node[i]);
		CHECK(node[i].next == NULL);
		CHECK(next[i].next == NULL);
	}
	/* A successor that has linked itself. */
	for (i = 0; i < 2; i++) {
		next[i].granted = 0;
		lock[i].tail = &next[i];
		node[i].next = &next[i];
	}
	locklab_mcs_unlock_inline(&lock[0], &node[0]);
	locklab_mcs_unlock(&lock[1], &node[1]);
	CHECK(next[0].granted == next[1].granted && next[0].granted != 0);
	for (i = 0; i < 2; i++)
		CHECK(lock[i].tail == &next[i] && next[i].next == NULL);
	/* Nobody behind. */
	locklab_mcs_unlock_inline(&lock[0], &next[0]);
	locklab_mcs_unlock(&lock[1], &next[1]);
	CHECK(lock[0].tail == NULL && lock[1].tail == NULL);
	for (i = 0; i < 2; i++)
		node[i] = used(&stranger, start);
	CHECK(locklab_mcs_trylock_inline(&lock[0], &node[0]));
	CHECK(locklab_mcs_trylock(&lock[1], &node[1]));
	CHECK(node[0].granted == node[1].granted);
	for (i = 0; i < 2; i++) {
		CHECK(lock[i].tail == &node[i]);
		CHECK(node[i].next == NULL);
	}
}

int main(void)
{
	static const uint32_t edges[] = {
		0,	1,	    0xff,	0x100,	    0x101,
		0x1ff,	0xffff,	    0x10000,	0x10001,    0x1ffff,
		0x20001, 0xffff0000, 0xffff0001, 0xffffffff, 0x80008000,
	};
	uint32_t word = 13;
	size_t i;

	for (i = 0; i < sizeof edges / sizeof *edges; i++) {
		words(edges[i]);
		queue(edges[i]);
	}
	for (i = 0; i < 100000; i++) {
		/* xorshift */
		word ^= word << 13;
		word ^= word >> 17;
		word ^= word << 5;
		words(word);
		words((word & 0xffff) * 0x10001u);
		queue(word);
	}
	return 0;
}
