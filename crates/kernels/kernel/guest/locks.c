/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Records waits for locks of the kernel, by its own tracepoints (Linux 5.19 or
 * later) in tracefs.
 *
 * Tracepoints take time, so a run with them is a profile and never a sample. What
 * was recorded is sent as the kernel writes it ("trace LINE"), with the symbols
 * of its data ("symbol ADDRESS NAME"): the host pairs begins and ends. Events
 * that find no room are counted, and never overwrite earlier ones.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "locks.h"
#include "workloads.h"

#define TRACEFS "/sys/kernel/tracing/"
#define BEGIN TRACEFS "events/lock/contention_begin/"
#define END TRACEFS "events/lock/contention_end/"

/* Room for all CPUs together: some 40,000 waits with the calls before them. */
#define ROOM_KIB 8192L

static int opened;

static int put(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = strlen(value), written = fd < 0 ? -1 : write(fd, value, n);

	if (fd >= 0)
		close(fd);
	return written == n ? 0 : -1;
}

static void set(const char *path, const char *value)
{
	if (put(path, value))
		fail("cannot write %s into %s: %s", value, path, strerror(errno));
}

void locks_open(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	long room = ROOM_KIB / cpus;
	struct stat facts;
	char text[32];

	if (stat("/sys/kernel/tracing", &facts))
		fail("this kernel has no tracefs; its locks are profiled with CONFIG_FTRACE "
		     "and an option that turns on tracing of events");
	must_mount("none", "/sys/kernel/tracing", "tracefs", NULL);
	if (stat(BEGIN, &facts))
		fail("this kernel has no tracepoint lock:contention_begin (Linux 5.19 or later "
		     "has it)");
	set(TRACEFS "tracing_on", "0");
	snprintf(text, sizeof(text), "%ld", room < 64 ? 64 : room);
	set(TRACEFS "buffer_size_kb", text);
	/* One clock for all CPUs. */
	set(TRACEFS "trace_clock", "mono");
	set(TRACEFS "trace_options", "nooverwrite");
	/* The address of a lock, and not a hash of it. */
	set(TRACEFS "trace_options", "nohash-ptr");
	set(TRACEFS "trace_options", "sym-addr");
	set(TRACEFS "trace_options", "sym-offset");
	opened = 1;
	set(BEGIN "trigger", "stacktrace");
	set(BEGIN "enable", "1");
	set(END "enable", "1");
}

void locks_start(void)
{
	if (opened)
		set(TRACEFS "tracing_on", "1");
}

void locks_stop(void)
{
	if (opened)
		set(TRACEFS "tracing_on", "0");
}

void locks_close(void)
{
	int fd;

	if (!opened)
		return;
	opened = 0;
	put(TRACEFS "tracing_on", "0");
	put(BEGIN "enable", "0");
	put(END "enable", "0");
	put(BEGIN "trigger", "!stacktrace");
	fd = open(TRACEFS "trace", O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	put(TRACEFS "buffer_size_kb", "1");
}

/* Events that found no room, of all CPUs. */
static long lost(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF), sum = 0, n;
	char path[128], line[128];

	for (long cpu = 0; cpu < cpus; cpu++) {
		FILE *stats;

		snprintf(path, sizeof(path), TRACEFS "per_cpu/cpu%ld/stats", cpu);
		stats = fopen(path, "r");
		while (stats && fgets(line, sizeof(line), stats))
			if (sscanf(line, "dropped events: %ld", &n) == 1 ||
			    sscanf(line, "overrun: %ld", &n) == 1)
				sum += n;
		if (stats)
			fclose(stats);
	}
	return sum;
}

/* Writes each line of a file that is wanted, behind a word. */
static void send_lines(FILE *to, const char *path, const char *word, int symbols)
{
	FILE *from = fopen(path, "r");
	char line[1024];

	if (!from)
		fail("cannot read %s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), from)) {
		char address[32], kind, name[512];

		if (line[0] == '#')
			continue;
		if (!symbols)
			fprintf(to, "%s %s", word, line);
		else if (sscanf(line, "%31s %c %511s", address, &kind, name) == 3 &&
			 strchr("bBdDrRvV", kind))
			fprintf(to, "%s %s %s\n", word, address, name);
	}
	fclose(from);
}

void locks_say(void)
{
	FILE *to;

	if (!opened)
		return;
	say("locks-lost %ld", lost());
	to = fdopen(dup(results >= 0 ? results : 2), "w");
	if (!to)
		fail("cannot write what was recorded of locks");
	/* Large writes: each is a request to the host. */
	setvbuf(to, NULL, _IOFBF, 1 << 15);
	send_lines(to, TRACEFS "trace", "trace", 0);
	send_lines(to, "/proc/kallsyms", "symbol", 1);
	if (fclose(to))
		fail("cannot write what was recorded of locks");
	locks_close();
}
