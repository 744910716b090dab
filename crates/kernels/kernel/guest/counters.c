/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Hardware counters of all CPUs around the measured part of a workload:
 * cycles, instructions and L1i misses of one mode, as one pinned group.
 *
 * Only one mode at a time, because a processor may have four counters, and a
 * counter that takes turns with another is an estimate. It must never give the
 * count of a group that did not run all the time: the line is then "uncounted".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "counters.h"
#include "workloads.h"

#define MOST_CPUS 1024
#define MISSES(cache) ((cache) | PERF_COUNT_HW_CACHE_OP_READ << 8 | \
		       PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} events[] = {
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	{ "l1i-misses", PERF_TYPE_HW_CACHE, MISSES(PERF_COUNT_HW_CACHE_L1I) },
};
#define EVENTS (int)(sizeof(events) / sizeof(events[0]))

static int files[EVENTS][MOST_CPUS];
/* Why an event is not counted; 0 where it is. */
static int missing[EVENTS];
static long cpus;
static const char *suffix;

static int open_event(int event, int cpu, int leader_file, int user)
{
	struct perf_event_attr attribute = {
		.size = sizeof(attribute),
		.type = events[event].type,
		.config = events[event].config,
		.disabled = leader_file < 0,
		.pinned = leader_file < 0,
		.exclude_user = !user,
		.exclude_kernel = user,
		.exclude_hv = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	return syscall(SYS_perf_event_open, &attribute, -1, cpu, leader_file,
		       PERF_FLAG_FD_CLOEXEC);
}

void counters_open(const char *mode)
{
	int user = !strcmp(mode, "user");

	suffix = user ? "u" : "k";
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (cpus > MOST_CPUS)
		fail("counters of more than %d CPUs are not supported", MOST_CPUS);
	for (int cpu = 0; cpu < cpus; cpu++) {
		int first = -1;

		for (int event = 0; event < EVENTS; event++) {
			int file = missing[event] ? -1 : open_event(event, cpu, first, user);

			if (file < 0 && !missing[event])
				missing[event] = errno;
			if (first < 0)
				first = file;
			files[event][cpu] = file;
		}
	}
}

static void all(unsigned long request)
{
	for (int cpu = 0; cpu < cpus; cpu++)
		for (int event = 0; event < EVENTS; event++)
			if (files[event][cpu] >= 0) {
				/* The first of a CPU leads the others. */
				ioctl(files[event][cpu], request, PERF_IOC_FLAG_GROUP);
				break;
			}
}

void counters_start(void)
{
	all(PERF_EVENT_IOC_ENABLE);
}

void counters_stop(void)
{
	all(PERF_EVENT_IOC_DISABLE);
}

/* Why an event is not counted; nothing if it is. */
static const char *reason(int error)
{
	switch (error) {
	case 0:
		return NULL;
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		return "the processor has no such counter";
	default:
		return strerror(error);
	}
}

void counters_say(void)
{
	for (int event = 0; event < EVENTS && cpus; event++) {
		uint64_t sum = 0, value[3];
		const char *why = reason(missing[event]);

		for (int cpu = 0; cpu < cpus && !why; cpu++) {
			if (read(files[event][cpu], value, sizeof(value)) != sizeof(value))
				why = "it could not be scheduled beside the others";
			else if (value[1] != value[2])
				why = "it did not run all the time";
			else
				sum += value[0];
		}
		if (why)
			say("uncounted-%s:%s %s", events[event].name, suffix, why);
		else
			say("counter-%s:%s %llu", events[event].name, suffix,
			    (unsigned long long)sum);
	}
}
