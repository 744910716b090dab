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
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>
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
	run_planned();
	finish();
}
