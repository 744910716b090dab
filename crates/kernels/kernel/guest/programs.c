/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Workloads of other programs: nginx with ab, db_bench, fs_mark, make. A run
 * of a program that does not do all of its work must never count.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "disk.h"
#include "plan.h"
#include "workloads.h"

/* Starts a program, its output into a file. */
static pid_t start(const char *output, char *const arguments[])
{
	pid_t child = fork();

	if (child < 0)
		fail("cannot fork: %s", strerror(errno));
	if (child == 0) {
		int fd = open(output, O_WRONLY | O_CREAT | O_APPEND, 0644);

		if (fd >= 0) {
			dup2(fd, 1);
			dup2(fd, 2);
		}
		execv(arguments[0], arguments);
		dprintf(2, "locklab: cannot start %s: %s\n", arguments[0], strerror(errno));
		_exit(127);
	}
	return child;
}

/* What a program left to read goes to the console, where the host finds it. */
static void show(const char *output)
{
	char buffer[2048];
	ssize_t n;
	int fd = open(output, O_RDONLY);

	while (fd >= 0 && (n = read(fd, buffer, sizeof(buffer))) > 0)
		if (write(2, buffer, n) != n)
			break;
}

static void wait_for(pid_t child, const char *what, const char *output)
{
	int status;

	if (waitpid(child, &status, 0) != child || status) {
		show(output);
		if (WIFSIGNALED(status))
			fail("%s was killed by signal %d", what, WTERMSIG(status));
		fail("%s ended with status %d", what, WEXITSTATUS(status));
	}
}

/* The number after the first occurrence of a text in a file; -1 if none. */
static long number_after(const char *output, const char *text)
{
	static char all[65536];
	int fd = open(output, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, all, sizeof(all) - 1);
	char *at;

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return -1;
	all[n] = 0;
	at = strstr(all, text);
	return at ? atol(at + strlen(text)) : -1;
}

/* ---- nginx-churn: a connection for each request --------------------------- */

/* The host counts this one alone (workload.rs). */
#define SERVER_CPU 1

static void ab(const char *output, long requests)
{
	char n[32], c[32];
	char *arguments[] = { "/usr/bin/ab", "-q", "-n", n, "-c", c,
			      "http://127.0.0.1:8080/", NULL };

	unlink(output);
	snprintf(n, sizeof(n), "%ld", requests);
	snprintf(c, sizeof(c), "%ld", plan.concurrency < requests ? plan.concurrency : requests);
	wait_for(start(output, arguments), "ab", output);
	if (number_after(output, "Complete requests:") != requests ||
	    number_after(output, "Failed requests:") != 0 ||
	    number_after(output, "Non-2xx responses:") > 0) {
		show(output);
		fail("ab did not complete %ld requests without a failure", requests);
	}
}

void run_nginx(void)
{
	char *arguments[] = { "/usr/sbin/nginx", "-c", "/lab/nginx.conf", NULL };
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(8080) };
	pid_t nginx;

	mkdir("/var", 0755), mkdir("/var/lib", 0755), mkdir("/var/lib/nginx", 0755);
	mkdir("/var/log", 0755), mkdir("/var/log/nginx", 0755);
	loopback_up();
	/* With several CPUs the server has one of its own, as in report 1. */
	if (plan.vcpus > 1)
		pin(SERVER_CPU);
	nginx = start("/tmp/nginx.out", arguments);
	if (plan.vcpus > 1)
		pin(0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int tries = 0;; tries++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		int refused = connect(fd, (struct sockaddr *)&address, sizeof(address));

		close(fd);
		if (!refused)
			break;
		if (tries == 500 || waitpid(nginx, NULL, WNOHANG) == nginx) {
			show("/tmp/nginx.out");
			fail("nginx does not answer");
		}
		usleep(20000);
	}
	ab("/tmp/warm.out", plan.operations / 5 + 20);
	begin();
	ab("/tmp/ab.out", plan.operations);
	end();
	kill(nginx, SIGTERM);
	waitpid(nginx, NULL, 0);
	say("unit request");
	say("work %ld", plan.operations);
}

/* ---- rocksdb-deleteseq ---------------------------------------------------- */

void run_deleteseq(void)
{
	char num[32];
	char *arguments[] = { "/usr/bin/db_bench", "--benchmarks=deleteseq",
			      "--db=/tmp/db", "--compression_type=none", "--seed=1", num, NULL };

	snprintf(num, sizeof(num), "--num=%ld", plan.operations);
	begin();
	wait_for(start("/tmp/db.out", arguments), "db_bench", "/tmp/db.out");
	end();
	show("/tmp/db.out");
	say("unit deletion");
	say("work %ld", plan.operations);
}

/* ---- fs-mark: XFS on a RAM disk, or on a disk that may be overwritten */

void run_fs_mark(void)
{
	char n[32], t[32];
	const char *device = plan.disk[0] ? scratch_disk(plan.disk) : "/dev/ram0";
	char *mkfs[] = { "/usr/sbin/mkfs.xfs", "-q", "-f", "-L", OUR_LABEL, (char *)device, NULL };
	char *arguments[] = { "/usr/bin/fs_mark", "-d", "/mnt/marks", "-n", n, "-s", "4096",
			      "-t", t, "-S", "1", "-k", NULL };

	wait_for(start("/tmp/mkfs.out", mkfs), "mkfs.xfs", "/tmp/mkfs.out");
	must_mount(device, "/mnt", "xfs", NULL);
	mkdir("/mnt/marks", 0755);
	if (chdir("/tmp"))
		fail("there is no /tmp");
	snprintf(n, sizeof(n), "%ld", plan.operations);
	snprintf(t, sizeof(t), "%ld", plan.processes);
	begin();
	wait_for(start("/tmp/fs_mark.out", arguments), "fs_mark", "/tmp/fs_mark.out");
	end();
	/* Another run in this kernel makes it anew. */
	if (umount2("/mnt", 0))
		fail("cannot unmount %s: %s", device, strerror(errno));
	say("unit file");
	say("work %ld", plan.operations * plan.processes);
}

/* ---- kernel-build: make of some files of the kernel -------------------------- */

static void make(const char *target, long jobs)
{
	char j[32];
	char *arguments[] = { "/usr/bin/make", "-s", "-C", "/lab/build/objects", "-f",
			      "locklab.mk", j, (char *)target, NULL };

	snprintf(j, sizeof(j), "-j%ld", jobs);
	wait_for(start("/tmp/make.out", arguments), "make", "/tmp/make.out");
}

void run_kernel_build(void)
{
	/* make and gcc look for programs there. */
	setenv("PATH", "/usr/bin:/bin", 1);
	make("out/warm.o", 1);
	begin();
	make("all", plan.processes > 1 ? plan.processes : plan.vcpus);
	end();
	say("unit file");
	say("work %ld", plan.operations);
}
