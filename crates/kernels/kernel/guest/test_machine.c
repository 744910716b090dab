/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The program of a test machine. In a measured kernel it is the first program
 * (test_machine_first.c) and the shell of its only user, so that ssh gives it one
 * command; the machine's own system runs it from a folder in memory, to load
 * and start a kernel.
 *
 * It exists because a test machine must need no package of ours, and because a
 * distribution's init does other work at unpredictable times. It is linked
 * statically. It must never write to a disk, and never start a kernel that was
 * not loaded by the same session.
 *
 * Commands: put NAME, get NAME, sum NAME, facts, load, unload, exec, run NAME,
 * results NAME, log, watchdog SECONDS, reboot. All but get and results print
 * little, and an error is one sentence on standard error with status 1.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kexec.h>
#include <linux/reboot.h>
#include <linux/watchdog.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test_machine.h"
#include "workloads.h"

/* The results of the run in this process, before and after its end. */
static char unfinished[256], finished[256];

static int refuse(const char *what, const char *name)
{
	fprintf(stderr, "locklab: %s %s: %s\n", what, name, strerror(errno));
	return 1;
}

const char *in_folder(const char *name)
{
	static char paths[8][600], folder[300];
	static int next;
	char *path = paths[next++ % 8], *slash;
	ssize_t n = *folder ? 0 : readlink("/proc/self/exe", folder, sizeof(folder) - 1);

	if (n > 0) {
		folder[n] = 0;
		slash = strrchr(folder, '/');
		*slash = 0;
		/* In a measured kernel the programs lie in its first file system. */
		if (!*folder || !strcmp(folder, "/lab"))
			strcpy(folder, FOLDER);
	}
	snprintf(path, sizeof(paths[0]), "%s/%.250s", folder, name);
	return path;
}

/* A file of the session; a name has no folder. */
static const char *path_of(const char *kind, const char *name)
{
	char path[300];

	for (const char *at = name; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("-_.", *at)) {
			fprintf(stderr, "locklab: '%s' is not the name of a file\n", name);
			exit(1);
		}
	snprintf(path, sizeof(path), "%s%.200s", kind, name);
	return in_folder(path);
}

static int copy(int from, int to)
{
	static char buffer[1 << 16];
	ssize_t n;

	while ((n = read(from, buffer, sizeof(buffer))) > 0)
		for (ssize_t at = 0, m; at < n; at += m) {
			m = write(to, buffer + at, n - at);
			if (m <= 0)
				return -1;
		}
	return n < 0 ? -1 : 0;
}

static int put(const char *name)
{
	const char *path = path_of("", name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || copy(0, fd) || close(fd))
		return refuse("cannot write", path);
	return 0;
}

static int get(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || copy(fd, 1))
		return refuse("cannot read", path);
	close(fd);
	return 0;
}

/* Loads the kernel of the session: image, initramfs, cmdline. */
static int load(void)
{
	static char cmdline[4096];
	int image = open(in_folder("image"), O_RDONLY | O_CLOEXEC);
	int initramfs = open(in_folder("initramfs"), O_RDONLY | O_CLOEXEC);
	int line = open(in_folder("cmdline"), O_RDONLY | O_CLOEXEC);
	ssize_t n = line < 0 ? -1 : read(line, cmdline, sizeof(cmdline) - 1);

	if (image < 0 || initramfs < 0 || n < 0)
		return refuse("cannot read", "image, initramfs and cmdline");
	while (n > 0 && cmdline[n - 1] == '\n')
		n--;
	cmdline[n] = 0;
	if (syscall(SYS_kexec_file_load, image, initramfs, (unsigned long)n + 1, cmdline, 0UL)) {
		const char *lockdown = line_of("/sys/kernel/security/lockdown");

		fprintf(stderr, "locklab: the kernel refuses the image: %s%s%s\n", strerror(errno),
			strstr(lockdown, "[none]") || !*lockdown ? "" : "; lockdown: ",
			strstr(lockdown, "[none]") ? "" : lockdown);
		return 1;
	}
	return 0;
}

/* Forgets a loaded kernel: a restart must not start it. */
static int unload(void)
{
	if (syscall(SYS_kexec_file_load, -1, -1, 0UL, NULL, (unsigned long)KEXEC_FILE_UNLOAD))
		return refuse("cannot unload", "the kernel");
	return 0;
}

/* Lets the answer of this command out before the machine goes. */
static void after_the_answer(void)
{
	pid_t child = fork();

	if (child) {
		exit(child < 0 ? refuse("cannot", "fork") : 0);
	}
	setsid();
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	usleep(300000);
}

/* Starts the loaded kernel. A system with systemd stops its services and
 * unmounts; any other has its file systems made read-only here. */
static int execute(void)
{
	struct stat facts;

	if (strcmp(line_of("/sys/kernel/kexec_loaded"), "1")) {
		fprintf(stderr, "locklab: no kernel is loaded\n");
		return 1;
	}
	if (!stat("/run/systemd/system", &facts)) {
		execlp("systemctl", "systemctl", "--no-block", "kexec", (char *)NULL);
		return refuse("cannot start", "systemctl");
	}
	after_the_answer();
	sync();
	write_line("/proc/sysrq-trigger", "u");
	sync();
	syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_KEXEC, NULL);
	_exit(1);
}

static int go_home(void)
{
	after_the_answer();
	sync();
	syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_RESTART,
		NULL);
	_exit(1);
}

/* Arms a watchdog and leaves it armed: the measured kernel feeds it. */
static int arm_watchdog(const char *seconds)
{
	int timeout = atoi(seconds);
	int fd = open("/dev/watchdog", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, WDIOC_SETTIMEOUT, &timeout))
		return refuse("cannot arm", "/dev/watchdog");
	printf("%d\n", timeout);
	return 0;
}

/* The kernel's messages. */
static int print_log(void)
{
	static char log[1 << 18];
	int n = syscall(SYS_syslog, 3 /* SYSLOG_ACTION_READ_ALL */, log, sizeof(log));

	if (n < 0)
		return refuse("cannot read", "the kernel's messages");
	return fwrite(log, 1, n, stdout) == (size_t)n ? 0 : 1;
}

static int lock_of_runs(int how)
{
	int fd = open(in_folder("running"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0 && !flock(fd, how))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

int is_running(void)
{
	int fd = lock_of_runs(LOCK_SH | LOCK_NB);

	if (fd >= 0)
		close(fd);
	return fd < 0;
}

void finish(void)
{
	/* The first program has no results: a kernel without it must not stay. */
	if (getpid() == 1) {
		write_line("/dev/kmsg", "locklab: the first program gives up");
		_exit(1);
	}
	fsync(results);
	if (rename(unfinished, finished))
		_exit(1);
	_exit(0);
}

/* Waits for the end of what runs, and prints the results of a plan. */
static int print_results(const char *name)
{
	int lock = lock_of_runs(LOCK_SH);
	struct stat facts;

	if (lock < 0)
		return refuse("cannot wait for", name);
	close(lock);
	if (stat(path_of("results-", name), &facts)) {
		/* Killed, or never started. */
		printf("failed the workload ended without a result\n");
		return 0;
	}
	return get(path_of("results-", name));
}

/* Runs a plan in a session of its own: a broken connection does not end it. */
static int run(const char *name)
{
	int lock = lock_of_runs(LOCK_EX | LOCK_NB);
	int status;
	pid_t child;

	if (lock < 0) {
		fprintf(stderr, "locklab: another workload is running\n");
		return 1;
	}
	snprintf(finished, sizeof(finished), "%s", path_of("results-", name));
	snprintf(unfinished, sizeof(unfinished), "%s", path_of("unfinished-", name));
	unlink(finished);
	child = fork();
	if (child < 0)
		return refuse("cannot", "fork");
	if (child == 0) {
		int log = open(path_of("log-", name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

		setsid();
		leader = getpid();
		results = open(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		dup2(log, 1);
		dup2(log, 2);
		close(0);
		open("/dev/null", O_RDONLY);
		read_plan(path_of("plan-", name));
		run_planned();
		finish();
	}
	close(lock);
	waitpid(child, &status, 0);
	return print_results(name);
}

static int command(char *words)
{
	char *what = strtok(words, " "), *name = strtok(NULL, " ");

	if (!what) {
		fprintf(stderr, "locklab: there is no shell here, only commands of locklab\n");
		return 1;
	}
	write_line(in_folder(SEEN), what);
	if (!strcmp(what, "facts"))
		return print_facts();
	if (!strcmp(what, "load"))
		return load();
	if (!strcmp(what, "unload"))
		return unload();
	if (!strcmp(what, "exec"))
		return execute();
	if (!strcmp(what, "reboot"))
		return go_home();
	if (!strcmp(what, "log"))
		return print_log();
	if (name && !strcmp(what, "put"))
		return put(name);
	if (name && !strcmp(what, "get"))
		return get(path_of("", name));
	if (name && !strcmp(what, "sum")) {
		execlp("sha256sum", "sha256sum", path_of("", name), (char *)NULL);
		return refuse("cannot start", "sha256sum");
	}
	if (name && !strcmp(what, "run"))
		return run(name);
	if (name && !strcmp(what, "results"))
		return print_results(name);
	if (name && !strcmp(what, "watchdog"))
		return arm_watchdog(name);
	fprintf(stderr, "locklab: there is no command '%s' here\n", what);
	return 1;
}

int main(int count, char **words)
{
	char line[512] = "";

	if (getpid() == 1)
		first_program();
	/* As a shell: "-c", then the whole command; at home: its words. */
	for (int at = count > 2 && !strcmp(words[1], "-c") ? 2 : 1; at < count; at++) {
		strncat(line, words[at], sizeof(line) - strlen(line) - 2);
		strcat(line, " ");
	}
	return command(line);
}
