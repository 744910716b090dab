/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The first program of a guest of QEMU: mounts what a workload needs, runs it
 * (workloads.c), sends the results through a virtio-serial port, and turns the
 * machine off.
 *
 * It exists because a distribution's init does other work, at unpredictable
 * times, and because a marker must be executed inside. It is linked statically,
 * so that it needs nothing of the guest. It must never continue after something
 * failed. It reads /lab/plan.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>
#include "plan.h"
#include "workloads.h"

void finish(void)
{
	if (results >= 0)
		fsync(results);
	/* -no-reboot makes QEMU exit. */
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

/* Without udev there is no /dev/virtio-ports: a port is found by its name. */
static void open_port(void)
{
	for (int wait = 0; wait < 1000; wait++) {
		DIR *ports = opendir("/sys/class/virtio-ports");
		struct dirent *entry;

		while (ports && (entry = readdir(ports))) {
			char path[600], name[64] = "";
			int fd;

			snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", entry->d_name);
			fd = open(path, O_RDONLY);
			if (fd < 0)
				continue;
			if (read(fd, name, sizeof(name) - 1) < 0)
				name[0] = 0;
			close(fd);
			if (strncmp(name, "locklab", 7))
				continue;
			snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
			results = open(path, O_WRONLY | O_CLOEXEC);
			if (results >= 0) {
				closedir(ports);
				return;
			}
		}
		if (ports)
			closedir(ports);
		usleep(10000);
	}
	fail("there is no virtio-serial port named locklab");
}

/*
 * Brings up the CPUs that the kernel left out (maxcpus=1). Where CPUs take turns, QEMU
 * before 8.1 gives the next one only what the first leaves of its turn, and the kernel
 * waits for a new CPU in a loop that leaves nothing: the start takes minutes. A
 * process beside it that pauses hands its turns over.
 */
static void bring_up_cpus(void)
{
	pid_t pausing;

	if (sysconf(_SC_NPROCESSORS_ONLN) >= plan.vcpus)
		return;
	pausing = fork();
	if (pausing < 0)
		fail("cannot fork");
	if (pausing == 0)
		for (;;) {
			__builtin_ia32_pause();
			sched_yield();
		}
	for (long cpu = 1; cpu < plan.vcpus; cpu++) {
		char path[64];
		int fd;

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld/online", cpu);
		fd = open(path, O_WRONLY);
		if (fd < 0 || write(fd, "1", 1) != 1)
			fail("CPU %ld does not start", cpu);
		close(fd);
	}
	kill(pausing, SIGKILL);
	waitpid(pausing, NULL, 0);
}

int main(void)
{
	if (getpid() != 1) {
		fputs("locklab init: runs as the first process of a guest only\n", stderr);
		return 2;
	}
	leader = 1;
	must_mount("none", "/dev", "devtmpfs", NULL);
	for (int i = 0; i < 3; i++) {
		close(i);
		open("/dev/console", O_RDWR);
	}
	must_mount("none", "/proc", "proc", NULL);
	must_mount("none", "/sys", "sysfs", NULL);
	must_mount("none", "/tmp", "tmpfs", NULL);
	must_mount("none", "/run", "tmpfs", NULL);
	load_modules();
	open_port();
	read_plan("/lab/plan");
	bring_up_cpus();
	run_planned();
	finish();
}
