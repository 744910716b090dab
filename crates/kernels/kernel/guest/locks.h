/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The kernel's own tracepoints of waits for locks around the measured part of a
 * workload.
 */
#ifndef LOCKLAB_LOCKS_H
#define LOCKLAB_LOCKS_H

/* Makes the tracepoints ready; nothing is recorded before locks_start(). */
void locks_open(void);
void locks_start(void);
void locks_stop(void);
/* Writes what was recorded, and what symbols are called, into the results. */
void locks_say(void);
/* Turns the tracepoints off: the next run of this kernel may be a sample. */
void locks_close(void);

#endif
