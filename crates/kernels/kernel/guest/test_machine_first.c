/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The first program of a measured kernel on a test machine: mounts, modules,
 * processor settings, network, and dropbear, through which everything else is
 * asked for. It reads /lab/machine, one "KEY VALUE" per line.
 *
 * It must never leave the machine in this kernel for good: what cannot be set
 * up ends in a panic, after which the kernel restarts the machine, and so does
 * a silence longer than the limit.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/reboot.h>
#include <linux/watchdog.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "test_machine.h"
#include "workloads.h"

static char mac[32], address[32], gateway[32], port[16] = "22";
static long prefix = 24, limit = 900;

const char *line_of(const char *path)
{
	static char text[8][4096];
	static int next;
	char *line = text[next++ % 8];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(text[0]) - 1);

	if (fd >= 0)
		close(fd);
	line[n > 0 ? n : 0] = 0;
	line[strcspn(line, "\n")] = 0;
	return line;
}

void write_line(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd >= 0) {
		if (write(fd, text, strlen(text)) < 0)
			fprintf(stderr, "locklab: cannot write %s\n", path);
		close(fd);
	}
}

static void read_machine(void)
{
	FILE *file = fopen("/lab/machine", "r");
	char key[32], value[64];

	if (!file)
		fail("there is no /lab/machine");
	while (fscanf(file, "%31s %63s", key, value) == 2) {
		if (!strcmp(key, "mac"))
			snprintf(mac, sizeof(mac), "%.31s", value);
		else if (!strcmp(key, "address"))
			snprintf(address, sizeof(address), "%.31s", value);
		else if (!strcmp(key, "prefix"))
			prefix = atol(value);
		else if (!strcmp(key, "gateway"))
			snprintf(gateway, sizeof(gateway), "%.31s", value);
		else if (!strcmp(key, "port"))
			snprintf(port, sizeof(port), "%.15s", value);
		else if (!strcmp(key, "limit"))
			limit = atol(value);
		else
			fail("/lab/machine has an unknown key '%s'", key);
	}
	fclose(file);
}

/* Frequency and turbo are not those of the machine's own system: it is left as
 * it is, and a restart undoes this. */
void settle_machine(void)
{
	glob_t found;

	if (!glob("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", 0, NULL, &found))
		for (size_t at = 0; at < found.gl_pathc; at++)
			write_line(found.gl_pathv[at], "performance");
	globfree(&found);
	if (!access("/sys/devices/system/cpu/intel_pstate/no_turbo", W_OK))
		write_line("/sys/devices/system/cpu/intel_pstate/no_turbo", "1");
	if (!access("/sys/devices/system/cpu/cpufreq/boost", W_OK))
		write_line("/sys/devices/system/cpu/cpufreq/boost", "0");
}

/* The name of the interface with the address of the machine's own. */
static int find_interface(char *name)
{
	DIR *folder = opendir("/sys/class/net");
	struct dirent *entry;
	int found = 0;

	while (folder && !found && (entry = readdir(folder))) {
		char path[300];

		snprintf(path, sizeof(path), "/sys/class/net/%.200s/address", entry->d_name);
		if (strcasecmp(line_of(path), mac))
			continue;
		snprintf(name, IFNAMSIZ, "%.15s", entry->d_name);
		found = 1;
	}
	if (folder)
		closedir(folder);
	return found;
}

static struct sockaddr as_address(const char *text)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr any;

	if (text && inet_pton(AF_INET, text, &in.sin_addr) != 1)
		fail("'%s' is not an IPv4 address", text);
	memcpy(&any, &in, sizeof(any));
	return any;
}

static void network_up(void)
{
	struct ifreq request = { 0 };
	struct rtentry route = { .rt_flags = RTF_UP | RTF_GATEWAY };
	struct sockaddr_in mask = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (int tries = 0; !find_interface(request.ifr_name); tries++) {
		if (tries == 600)
			fail("there is no network interface %s; has this kernel its driver?", mac);
		usleep(100000);
	}
	request.ifr_addr = as_address(address);
	if (ioctl(fd, SIOCSIFADDR, &request))
		fail("cannot give %s its address: %s", request.ifr_name, strerror(errno));
	mask.sin_addr.s_addr = prefix ? htonl(~0u << (32 - prefix)) : 0;
	memcpy(&request.ifr_netmask, &mask, sizeof(mask));
	if (ioctl(fd, SIOCSIFNETMASK, &request))
		fail("cannot give %s its mask: %s", request.ifr_name, strerror(errno));
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &request))
		fail("cannot bring up %s: %s", request.ifr_name, strerror(errno));
	if (*gateway) {
		route.rt_dst = as_address(NULL);
		route.rt_genmask = as_address(NULL);
		route.rt_gateway = as_address(gateway);
		if (ioctl(fd, SIOCADDRT, &route) && errno != EEXIST)
			fail("cannot route through %s: %s", gateway, strerror(errno));
	}
	close(fd);
}

static pid_t start_dropbear(void)
{
	/* In a chain images are uploaded to it, so its window is large. */
	char *arguments[] = { "/usr/sbin/dropbear", "-F", "-E", "-s", "-j", "-k", "-W",
			      "1000000", "-r", "/lab/hostkey", "-p", port, "-P",
			      "/run/dropbear.pid", NULL };
	pid_t child = fork();

	if (child < 0)
		fail("cannot fork: %s", strerror(errno));
	if (child == 0) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execv(arguments[0], arguments);
		_exit(127);
	}
	return child;
}

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_REALTIME, &at);
	return at.tv_sec + at.tv_nsec / 1e9;
}

/* Seconds since the last command. */
static double silence(double start)
{
	struct stat seen;

	if (stat(in_folder(SEEN), &seen))
		return now() - start;
	return now() - (seen.st_mtim.tv_sec + seen.st_mtim.tv_nsec / 1e9);
}

void first_program(void)
{
	struct timespec wait = { .tv_sec = 5 };
	double start;
	sigset_t child;
	pid_t dropbear;
	int watchdog;

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
	mkdir(FOLDER, 0700);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	load_modules();
	read_machine();
	/* One that the machine's own system armed, or nothing. */
	watchdog = open("/dev/watchdog", O_WRONLY | O_CLOEXEC);
	settle_machine();
	loopback_up();
	network_up();
	setenv("PATH", "/usr/sbin:/usr/bin", 1);
	dropbear = start_dropbear();
	start = now();
	for (;;) {
		pid_t ended;

		if (watchdog >= 0)
			ioctl(watchdog, WDIOC_KEEPALIVE, 0);
		sigtimedwait(&child, NULL, &wait);
		while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
			if (ended == dropbear)
				fail("dropbear ended");
		if (silence(start) > limit && !is_running())
			syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
				LINUX_REBOOT_CMD_RESTART, NULL);
	}
}

static void print_file(const char *key, const char *path)
{
	const char *line = line_of(path);

	if (*line)
		printf("%s %s\n", key, line);
}

/* The value after a text in /proc/cpuinfo, of the first CPU. */
static void print_cpu(const char *key, const char *text)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[1024];

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, text, strlen(text)) && strchr(line, ':')) {
			printf("%s %s", key, strchr(line, ':') + 2);
			break;
		}
	if (file)
		fclose(file);
}

int print_facts(void)
{
	struct utsname name;

	uname(&name);
	print_file("boot-id", "/proc/sys/kernel/random/boot_id");
	print_file("cmdline", "/proc/cmdline");
	printf("release %s\nversion %s\n", name.release, name.version);
	printf("cpus %ld\n", sysconf(_SC_NPROCESSORS_ONLN));
	print_cpu("processor", "model name");
	print_cpu("microcode", "microcode");
	print_file("governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
	print_file("no-turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo");
	print_file("boost", "/sys/devices/system/cpu/cpufreq/boost");
	print_file("smt", "/sys/devices/system/cpu/smt/active");
	print_file("nmi-watchdog", "/proc/sys/kernel/nmi_watchdog");
	if (!access("/dev/watchdog", F_OK))
		puts("watchdog yes");
	return 0;
}
