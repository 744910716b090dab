/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What the parts of test_machine.c share: the first program of a measured kernel on a
 * test machine, and the commands that it and the machine's own system answer.
 */
#ifndef LOCKLAB_TEST_MACHINE_H
#define LOCKLAB_TEST_MACHINE_H

/* Where files of a session are kept in a measured kernel. At home it is the
 * folder in which this program lies. Both are in memory. */
#define FOLDER "/run/locklab"
/* The path of a file of the session; the text is overwritten by later calls. */
const char *in_folder(const char *name);

/* The first program of a measured kernel; it never returns. */
void first_program(void) __attribute__((noreturn));

/* Sets what a measured kernel needs: frequency, turbo. */
void settle_machine(void);
/* Prints what a measured kernel is, one "KEY VALUE" per line. */
int print_facts(void);

/* Whether the workload of a command is running. */
int is_running(void);
/* The name of the file whose time is that of the last command. */
#define SEEN "seen"

/* The contents of a small file in one line; an empty text if there is none. */
const char *line_of(const char *path);
void write_line(const char *path, const char *text);

#endif
