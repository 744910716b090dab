/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What the first program of a measured kernel and the workloads share.
 */
#ifndef LOCKLAB_WORKLOADS_H
#define LOCKLAB_WORKLOADS_H

#include <sys/types.h>

/* The descriptor of the results; standard error while it is negative. */
extern int results;
/* The process that speaks for all: in its children a failure only ends them. */
extern pid_t leader;

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says why there is no result, and ends by finish(). */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* What follows the last line; each program has its own. */
void finish(void) __attribute__((noreturn));

void must_mount(const char *source, const char *target, const char *kind, const char *options);
/* Loads the modules that /lab/modules names, in its order. */
void load_modules(void);
void loopback_up(void);
void read_plan(const char *path);
/* Runs the workload of the plan that was read; the last line is "done". */
void run_planned(void);

#endif
