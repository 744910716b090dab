/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Workloads of system calls alone: fstat(2) by several processes, and two tasks
 * that wake each other through pipes. They run no other program.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "plan.h"
#include "workloads.h"

/* ---- fstat: each process on a file of its own ---------------------------- */

static void fstat_loop(int fd, long calls)
{
	struct stat result;

	for (long i = 0; i < calls; i++)
		if (syscall(SYS_fstat, fd, &result))
			fail("fstat: %s", strerror(errno));
}

void run_fstat(void)
{
	int ready[2], go[2];
	char byte = 0;

	if (pipe(ready) || pipe(go))
		fail("cannot make a pipe: %s", strerror(errno));
	for (long i = 0; i < plan.processes; i++) {
		pid_t child = fork();

		if (child < 0)
			fail("cannot fork: %s", strerror(errno));
		if (child == 0) {
			char name[32];
			int fd;

			snprintf(name, sizeof(name), "/tmp/file%ld", i);
			fd = open(name, O_RDWR | O_CREAT, 0600);
			if (fd < 0)
				fail("cannot make %s: %s", name, strerror(errno));
			fstat_loop(fd, plan.operations / 10 + 1);
			if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
				_exit(1);
			fstat_loop(fd, plan.operations);
			_exit(0);
		}
	}
	for (long i = 0; i < plan.processes; i++)
		if (read(ready[0], &byte, 1) != 1)
			fail("a process of fstat ended early");
	begin();
	for (long i = 0; i < plan.processes; i++)
		if (write(go[1], &byte, 1) != 1)
			fail("cannot start a process of fstat");
	for (long i = 0; i < plan.processes; i++) {
		int status;

		if (wait(&status) < 0 || status)
			fail("a process of fstat ended with status %d", status);
	}
	end();
	say("unit call");
	say("work %ld", plan.operations * plan.processes);
}

/* ---- context-switch: two tasks that wake each other through pipes -------- */

static int there[2], back[2];

static void pass(int from, int to, long rounds)
{
	char byte = 0;

	for (long i = 0; i < rounds; i++)
		if (read(from, &byte, 1) != 1 || write(to, &byte, 1) != 1)
			fail("a pipe of context-switch broke: %s", strerror(errno));
}

static void *other_thread(void *rounds)
{
	pass(there[0], back[1], (long)rounds);
	return NULL;
}

static void serve(long rounds)
{
	char byte = 0;

	for (long i = 0; i < rounds; i++)
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			fail("a pipe of context-switch broke: %s", strerror(errno));
}

void run_context_switch(int threads)
{
	long warm = plan.operations / 20 + 8, rounds = (plan.operations + 1) / 2;
	pthread_t other;
	pid_t child = 0;

	if (pipe(there) || pipe(back))
		fail("cannot make a pipe: %s", strerror(errno));
	if (threads) {
		if (pthread_create(&other, NULL, other_thread, (void *)(warm + rounds)))
			fail("cannot make a thread");
	} else {
		child = fork();
		if (child < 0)
			fail("cannot fork: %s", strerror(errno));
		if (child == 0) {
			pass(there[0], back[1], warm + rounds);
			_exit(0);
		}
	}
	serve(warm);
	begin();
	serve(rounds);
	end();
	if (threads)
		pthread_join(other, NULL);
	else
		waitpid(child, NULL, 0);
	say("unit switch");
	say("work %ld", 2 * rounds);
}
