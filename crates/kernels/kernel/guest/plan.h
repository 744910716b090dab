/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What the plan says, and what every workload calls around its measured part.
 */
#ifndef LOCKLAB_PLAN_H
#define LOCKLAB_PLAN_H

extern struct plan {
	char workload[64], type[64], counters[16], disk[256];
	long operations, processes, concurrency, seconds, vcpus;
	int profiled;
	char threads[256], critical[256], non_critical[256];
} plan;

/* Begin and end of the measured part; each workload calls both once. */
void begin(void);
void end(void);

/* Keeps this process, and what it starts from now on, on one CPU. */
void pin(int cpu);

/* calls.c */
void run_fstat(void);
void run_context_switch(int threads);
/* programs.c */
void run_nginx(void);
void run_deleteseq(void);
void run_fs_mark(void);
void run_kernel_build(void);
/* kernel_locks.c */
void run_spinlock_matrix(void);
void run_locktorture(void);

#endif
