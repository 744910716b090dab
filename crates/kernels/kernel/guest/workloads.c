/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What runs in a measured kernel: reads a plan, runs its workload (calls.c,
 * programs.c, kernel_locks.c) with the counters around the measured part, and writes
 * the results into a file.
 *
 * Two programs use it: init.c in a guest of QEMU, test_machine.c on a test machine. It
 * must never know which: where results go, and what follows a failure, is
 * theirs. It must never continue after something failed: the last line is then
 * "failed WHY", and the run counts as invalid.
 *
 * A plan has one "KEY VALUE" per line, and so have results. The line "done"
 * comes last and only if all went well.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "counters.h"
#include "locklab-marker.h"
#include "locks.h"
#include "plan.h"
#include "workloads.h"

int results = -1;
pid_t leader;

static struct timespec begun, ended;

struct plan plan = {
	.operations = 1000, .processes = 1, .concurrency = 8, .seconds = 5, .vcpus = 1,
	.threads = "1", .critical = "0", .non_critical = "1",
};

void say(const char *format, ...)
{
	char line[1024];
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf(line, sizeof(line) - 1, format, list);
	va_end(list);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (write(results >= 0 ? results : 2, line, n) != n)
		dprintf(2, "locklab: cannot write a result\n");
}

void fail(const char *format, ...)
{
	char why[512];
	va_list list;

	va_start(list, format);
	vsnprintf(why, sizeof(why), format, list);
	va_end(list);
	dprintf(2, "locklab: %s\n", why);
	if (getpid() != leader)
		_exit(1);
	locks_close();
	say("failed %s", why);
	finish();
}

void begin(void)
{
	counters_start();
	locks_start();
	clock_gettime(CLOCK_MONOTONIC, &begun);
	locklab_begin();
}

void end(void)
{
	locklab_end();
	clock_gettime(CLOCK_MONOTONIC, &ended);
	locks_stop();
	counters_stop();
}

void must_mount(const char *source, const char *target, const char *kind,
		       const char *options)
{
	mkdir(target, 0755);
	if (mount(source, target, kind, 0, options) && errno != EBUSY)
		fail("cannot mount %s on %s: %s", kind, target, strerror(errno));
}

/* A kernel without modules has no list of them. */
void load_modules(void)
{
	FILE *list = fopen("/lab/modules", "r");
	char name[256];

	if (!list)
		return;
	while (fscanf(list, "%255s", name) == 1) {
		int fd = open(name, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST))
			fail("cannot load %s: %s", name, strerror(errno));
		close(fd);
	}
	fclose(list);
}

void read_plan(const char *path)
{
	FILE *file = fopen(path, "r");
	char key[64], value[256];

	if (!file)
		fail("there is no plan %s", path);
	while (fscanf(file, "%63s %255[^\n]", key, value) == 2) {
		if (!strcmp(key, "workload"))
			snprintf(plan.workload, sizeof(plan.workload), "%.63s", value);
		else if (!strcmp(key, "type"))
			snprintf(plan.type, sizeof(plan.type), "%.63s", value);
		else if (!strcmp(key, "operations"))
			plan.operations = atol(value);
		else if (!strcmp(key, "processes"))
			plan.processes = atol(value);
		else if (!strcmp(key, "concurrency"))
			plan.concurrency = atol(value);
		else if (!strcmp(key, "seconds"))
			plan.seconds = atol(value);
		else if (!strcmp(key, "vcpus"))
			plan.vcpus = atol(value);
		else if (!strcmp(key, "counters"))
			snprintf(plan.counters, sizeof(plan.counters), "%.15s", value);
		else if (!strcmp(key, "disk"))
			snprintf(plan.disk, sizeof(plan.disk), "%s", value);
		else if (!strcmp(key, "profile") && !strcmp(value, "locks"))
			plan.profiled = 1;
		else if (!strcmp(key, "threads"))
			snprintf(plan.threads, sizeof(plan.threads), "%s", value);
		else if (!strcmp(key, "critical"))
			snprintf(plan.critical, sizeof(plan.critical), "%s", value);
		else if (!strcmp(key, "non-critical"))
			snprintf(plan.non_critical, sizeof(plan.non_critical), "%s", value);
		else
			fail("the plan has an unknown key '%s'", key);
	}
	fclose(file);
}

void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("cannot pin to CPU %d: %s", cpu, strerror(errno));
}

void loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		fail("cannot bring up the loopback device: %s", strerror(errno));
	close(fd);
}

/* A fault in /sys/.../vulnerabilities is no failure: old kernels lack it. */
static void say_mitigation(const char *name)
{
	char path[128], text[512];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/vulnerabilities/%s", name);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n > 0) {
		text[text[n - 1] == '\n' ? n - 1 : n] = 0;
		say("mitigation-%s %s", name, text);
	}
}

void run_planned(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	long long elapsed;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	say("booted-ms %lld", begun.tv_sec * 1000LL + begun.tv_nsec / 1000000);
	say_mitigation("spectre_v2");
	if (cpus != plan.vcpus)
		fail("the measured kernel has %ld CPUs instead of %ld", cpus, plan.vcpus);
	/* Only what runs everywhere is left to the scheduler. */
	if (plan.vcpus == 1 || !strncmp(plan.workload, "context-switch", 14))
		pin(0);
	if (plan.counters[0])
		counters_open(plan.counters);
	if (plan.profiled)
		locks_open();
	if (!strcmp(plan.workload, "boot")) {
		begin();
		end();
		say("unit boot");
		say("work 1");
	} else if (!strcmp(plan.workload, "fstat"))
		run_fstat();
	else if (!strcmp(plan.workload, "context-switch"))
		run_context_switch(0);
	else if (!strcmp(plan.workload, "context-switch-threads"))
		run_context_switch(1);
	else if (!strcmp(plan.workload, "nginx-churn"))
		run_nginx();
	else if (!strcmp(plan.workload, "rocksdb-deleteseq"))
		run_deleteseq();
	else if (!strcmp(plan.workload, "fs-mark"))
		run_fs_mark();
	else if (!strcmp(plan.workload, "kernel-build"))
		run_kernel_build();
	else if (!strcmp(plan.workload, "spinlock-matrix"))
		run_spinlock_matrix();
	else if (!strcmp(plan.workload, "locktorture"))
		run_locktorture();
	else
		fail("there is no workload '%s'", plan.workload);
	elapsed = (ended.tv_sec - begun.tv_sec) * 1000000000LL + ended.tv_nsec - begun.tv_nsec;
	say("elapsed-ns %lld", elapsed);
	counters_say();
	locks_say();
	say("done");
}
