/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Workloads inside the kernel: the matrix of report 3, which takes a patch of
 * ours, and the kernel's own torture test of its locks. A lock that lets in two at
 * once must never pass.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "plan.h"
#include "workloads.h"

/* ---- spinlock-matrix: threads of the kernel, in a kernel with our patch ---- */

#define MOST_CELLS 1024

static struct cell {
	long threads, critical, non_critical;
	long total, ns, least, most;
} cells[MOST_CELLS];

/* The next number of a list, as "1,2,4". */
static int next(char **list, long *number)
{
	if (!**list)
		return 0;
	*number = strtol(*list, list, 10);
	if (**list == ',')
		++*list;
	else if (**list)
		fail("a list of the plan has '%s'", *list);
	return 1;
}

static void run_cell(int matrix, struct cell *cell, long acquisitions)
{
	char text[128];
	ssize_t n;

	n = snprintf(text, sizeof(text), "%ld %ld %ld %ld", cell->threads, cell->critical,
		     cell->non_critical, acquisitions);
	if (write(matrix, text, n) != n)
		fail(errno == EIO ? "the lock let in two at once (cell %s)" :
				    "the kernel refuses the cell %s", text);
	n = pread(matrix, text, sizeof(text) - 1, 0);
	if (n <= 0)
		fail("the kernel's spinlock matrix does not answer");
	text[n] = 0;
	if (sscanf(text, "%ld %ld %ld %ld", &cell->total, &cell->ns, &cell->least,
		   &cell->most) != 4)
		fail("the kernel's spinlock matrix says '%s'", text);
	if (cell->ns <= 0 || cell->total <= 0)
		fail("a cell of the matrix is too short for the guest's clock; give more "
		     "operations");
}

void run_spinlock_matrix(void)
{
	int matrix = open("/proc/locklab_spinlock_matrix", O_RDWR | O_CLOEXEC);
	struct cell warm = { .critical = 1, .non_critical = 1 };
	char *in_threads = plan.threads, *in_critical, *in_non;
	long work = 0, count = 0, t, c, n;

	if (matrix < 0)
		fail("this kernel has no /proc/locklab_spinlock_matrix; it takes "
		     "spinlock-matrix.patch and its option");
	while (next(&in_threads, &t))
		for (in_critical = plan.critical; next(&in_critical, &c);)
			for (in_non = plan.non_critical; next(&in_non, &n);) {
				if (count == MOST_CELLS)
					fail("the plan has more than %d cells", MOST_CELLS);
				cells[count++] = (struct cell){ .threads = t, .critical = c,
							   .non_critical = n };
				warm.threads = t > warm.threads ? t : warm.threads;
			}
	run_cell(matrix, &warm, plan.operations / 10 + 1);
	begin();
	for (long i = 0; i < count; i++)
		run_cell(matrix, &cells[i], plan.operations);
	end();
	for (long i = 0; i < count; i++) {
		struct cell *at = &cells[i];

		work += at->total;
		say("cell-%ld-%ld-%ld %ld %ld %ld %ld", at->threads, at->critical,
		    at->non_critical, at->total, at->ns, at->least, at->most);
	}
	say("unit acquisition");
	say("work %ld", work);
}

/* ---- locktorture: the kernel's own check of a lock ------------------------- */

static void load_with(const char *name, const char *parameters)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_finit_module, fd, parameters, 0))
		fail("cannot load %s: %s", name, strerror(errno));
	close(fd);
}

static int kernel_log_has(const char *text)
{
	static char log[1 << 18];
	int n = syscall(SYS_syslog, 3 /* SYSLOG_ACTION_READ_ALL */, log, sizeof(log) - 1);

	log[n > 0 ? n : 0] = 0;
	return strstr(log, text) != NULL;
}

/* A kernel on a machine of its own waits in the queue of its lock; one that knows
 * that it is a guest may wait without. The host checks which was tortured. */
static void say_hypervisor(void)
{
	char flags[4096] = "";
	FILE *info = fopen("/proc/cpuinfo", "r");

	while (info && fgets(flags, sizeof(flags), info) && strncmp(flags, "flags", 5))
		;
	if (info)
		fclose(info);
	say("hypervisor %s", strstr(flags, " hypervisor") ? "yes" : "no");
}

void run_locktorture(void)
{
	char parameters[256];

	load_with("/lab/torture.ko", "");
	snprintf(parameters, sizeof(parameters),
		 "torture_type=%s nwriters_stress=%ld shuffle_interval=0 stutter=0 onoff_interval=0",
		 plan.type[0] ? plan.type : "spin_lock", plan.processes);
	load_with("/lab/locktorture.ko", parameters);
	begin();
	sleep(plan.seconds);
	if (syscall(SYS_delete_module, "locktorture", 0))
		fail("cannot unload locktorture: %s", strerror(errno));
	end();
	if (!kernel_log_has("End of test: SUCCESS"))
		fail("locktorture does not say SUCCESS");
	say_hypervisor();
	say("unit second");
	say("work %ld", plan.seconds);
}
