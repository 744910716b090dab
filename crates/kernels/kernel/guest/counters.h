/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Hardware counters of all CPUs around the measured part of a workload.
 */
#ifndef LOCKLAB_COUNTERS_H
#define LOCKLAB_COUNTERS_H

/* Opens the counters of one mode, "user" or "kernel", on every CPU. */
void counters_open(const char *mode);
void counters_start(void);
void counters_stop(void);
/* Says what was counted, and which counters are not there. */
void counters_say(void);

#endif
