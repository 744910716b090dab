/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The workloads of a measured kernel: reads a plan, runs its workload with the
 * counters around the measured part, and writes the results into a file.
 *
 * Two programs use it: init.c in a guest of QEMU, box.c on a test machine. It
 * must never know which: where results go, and what follows a failure, is
 * theirs. It must never continue after something failed: the last line is then
 * "failed WHY", and the run counts as invalid.
 *
 * A plan has one "KEY VALUE" per line, and so have results. The line "done"
 * comes last and only if all went well.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "counters.h"
#include "disk.h"
#include "locklab-marker.h"
#include "locks.h"
#include "workloads.h"

int results = -1;
pid_t leader;

static struct timespec begun, ended;

/* What the plan may say. */
static char workload[64], type[64], counted[16], disk[256];
static long operations = 1000, processes = 1, concurrency = 8, seconds = 5, vcpus = 1;
static int profiled;
static char threads[256] = "1", critical[256] = "0", non_critical[256] = "1";

void say(const char *format, ...)
{
	char line[1024];
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf(line, sizeof(line) - 1, format, list);
	va_end(list);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (write(results >= 0 ? results : 2, line, n) != n)
		dprintf(2, "locklab: cannot write a result\n");
}

void fail(const char *format, ...)
{
	char why[512];
	va_list list;

	va_start(list, format);
	vsnprintf(why, sizeof(why), format, list);
	va_end(list);
	dprintf(2, "locklab: %s\n", why);
	if (getpid() != leader)
		_exit(1);
	locks_close();
	say("failed %s", why);
	finish();
}

static void begin(void)
{
	counters_start();
	locks_start();
	clock_gettime(CLOCK_MONOTONIC, &begun);
	locklab_begin();
}

static void end(void)
{
	locklab_end();
	clock_gettime(CLOCK_MONOTONIC, &ended);
	locks_stop();
	counters_stop();
}

void must_mount(const char *source, const char *target, const char *kind,
		       const char *options)
{
	mkdir(target, 0755);
	if (mount(source, target, kind, 0, options) && errno != EBUSY)
		fail("cannot mount %s on %s: %s", kind, target, strerror(errno));
}

/* A kernel without modules has no list of them. */
void load_modules(void)
{
	FILE *list = fopen("/lab/modules", "r");
	char name[256];

	if (!list)
		return;
	while (fscanf(list, "%255s", name) == 1) {
		int fd = open(name, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST))
			fail("cannot load %s: %s", name, strerror(errno));
		close(fd);
	}
	fclose(list);
}

void read_plan(const char *path)
{
	FILE *plan = fopen(path, "r");
	char key[64], value[256];

	if (!plan)
		fail("there is no plan %s", path);
	while (fscanf(plan, "%63s %255[^\n]", key, value) == 2) {
		if (!strcmp(key, "workload"))
			snprintf(workload, sizeof(workload), "%.63s", value);
		else if (!strcmp(key, "type"))
			snprintf(type, sizeof(type), "%.63s", value);
		else if (!strcmp(key, "operations"))
			operations = atol(value);
		else if (!strcmp(key, "processes"))
			processes = atol(value);
		else if (!strcmp(key, "concurrency"))
			concurrency = atol(value);
		else if (!strcmp(key, "seconds"))
			seconds = atol(value);
		else if (!strcmp(key, "vcpus"))
			vcpus = atol(value);
		else if (!strcmp(key, "counters"))
			snprintf(counted, sizeof(counted), "%.15s", value);
		else if (!strcmp(key, "disk"))
			snprintf(disk, sizeof(disk), "%s", value);
		else if (!strcmp(key, "profile") && !strcmp(value, "locks"))
			profiled = 1;
		else if (!strcmp(key, "threads"))
			snprintf(threads, sizeof(threads), "%s", value);
		else if (!strcmp(key, "critical"))
			snprintf(critical, sizeof(critical), "%s", value);
		else if (!strcmp(key, "non-critical"))
			snprintf(non_critical, sizeof(non_critical), "%s", value);
		else
			fail("the plan has an unknown key '%s'", key);
	}
	fclose(plan);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("cannot pin to CPU %d: %s", cpu, strerror(errno));
}

void loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		fail("cannot bring up the loopback device: %s", strerror(errno));
	close(fd);
}

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

/* ---- fstat: each process on a file of its own ---------------------------- */

static void fstat_loop(int fd, long calls)
{
	struct stat result;

	for (long i = 0; i < calls; i++)
		if (syscall(SYS_fstat, fd, &result))
			fail("fstat: %s", strerror(errno));
}

static void run_fstat(void)
{
	int ready[2], go[2];
	char byte = 0;

	if (pipe(ready) || pipe(go))
		fail("cannot make a pipe: %s", strerror(errno));
	for (long i = 0; i < processes; i++) {
		pid_t child = fork();

		if (child < 0)
			fail("cannot fork: %s", strerror(errno));
		if (child == 0) {
			char name[32];
			int fd;

			snprintf(name, sizeof(name), "/tmp/file%ld", i);
			fd = open(name, O_RDWR | O_CREAT, 0600);
			if (fd < 0)
				fail("cannot make %s: %s", name, strerror(errno));
			fstat_loop(fd, operations / 10 + 1);
			if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
				_exit(1);
			fstat_loop(fd, operations);
			_exit(0);
		}
	}
	for (long i = 0; i < processes; i++)
		if (read(ready[0], &byte, 1) != 1)
			fail("a process of fstat ended early");
	begin();
	for (long i = 0; i < processes; i++)
		if (write(go[1], &byte, 1) != 1)
			fail("cannot start a process of fstat");
	for (long i = 0; i < processes; i++) {
		int status;

		if (wait(&status) < 0 || status)
			fail("a process of fstat ended with status %d", status);
	}
	end();
	say("unit call");
	say("work %ld", operations * processes);
}

/* ---- context-switch: two tasks that wake each other through pipes -------- */

static int there[2], back[2];

static void pass(int from, int to, long rounds)
{
	char byte = 0;

	for (long i = 0; i < rounds; i++)
		if (read(from, &byte, 1) != 1 || write(to, &byte, 1) != 1)
			fail("a pipe of context-switch broke: %s", strerror(errno));
}

static void *other_thread(void *rounds)
{
	pass(there[0], back[1], (long)rounds);
	return NULL;
}

static void serve(long rounds)
{
	char byte = 0;

	for (long i = 0; i < rounds; i++)
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			fail("a pipe of context-switch broke: %s", strerror(errno));
}

static void run_context_switch(int threads)
{
	long warm = operations / 20 + 8, rounds = (operations + 1) / 2;
	pthread_t other;
	pid_t child = 0;

	if (pipe(there) || pipe(back))
		fail("cannot make a pipe: %s", strerror(errno));
	if (threads) {
		if (pthread_create(&other, NULL, other_thread, (void *)(warm + rounds)))
			fail("cannot make a thread");
	} else {
		child = fork();
		if (child < 0)
			fail("cannot fork: %s", strerror(errno));
		if (child == 0) {
			pass(there[0], back[1], warm + rounds);
			_exit(0);
		}
	}
	serve(warm);
	begin();
	serve(rounds);
	end();
	if (threads)
		pthread_join(other, NULL);
	else
		waitpid(child, NULL, 0);
	say("unit switch");
	say("work %ld", 2 * rounds);
}

/* ---- nginx-churn: a connection for each request --------------------------- */

static void ab(const char *output, long requests)
{
	char n[32], c[32];
	char *arguments[] = { "/usr/bin/ab", "-q", "-n", n, "-c", c,
			      "http://127.0.0.1:8080/", NULL };

	unlink(output);
	snprintf(n, sizeof(n), "%ld", requests);
	snprintf(c, sizeof(c), "%ld", concurrency < requests ? concurrency : requests);
	wait_for(start(output, arguments), "ab", output);
	if (number_after(output, "Complete requests:") != requests ||
	    number_after(output, "Failed requests:") != 0 ||
	    number_after(output, "Non-2xx responses:") > 0) {
		show(output);
		fail("ab did not complete %ld requests without a failure", requests);
	}
}

static void run_nginx(void)
{
	char *arguments[] = { "/usr/sbin/nginx", "-c", "/lab/nginx.conf", NULL };
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(8080) };
	pid_t nginx;

	mkdir("/var", 0755), mkdir("/var/lib", 0755), mkdir("/var/lib/nginx", 0755);
	mkdir("/var/log", 0755), mkdir("/var/log/nginx", 0755);
	loopback_up();
	nginx = start("/tmp/nginx.out", arguments);
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
	ab("/tmp/warm.out", operations / 5 + 20);
	begin();
	ab("/tmp/ab.out", operations);
	end();
	kill(nginx, SIGTERM);
	waitpid(nginx, NULL, 0);
	say("unit request");
	say("work %ld", operations);
}

/* ---- rocksdb-deleteseq ---------------------------------------------------- */

static void run_deleteseq(void)
{
	char num[32];
	char *arguments[] = { "/usr/bin/db_bench", "--benchmarks=deleteseq",
			      "--db=/tmp/db", "--compression_type=none", "--seed=1", num, NULL };

	snprintf(num, sizeof(num), "--num=%ld", operations);
	begin();
	wait_for(start("/tmp/db.out", arguments), "db_bench", "/tmp/db.out");
	end();
	show("/tmp/db.out");
	say("unit deletion");
	say("work %ld", operations);
}

/* ---- fs-mark: XFS on a RAM disk, or on a disk that may be overwritten ------------------------------------------- */

static void run_fs_mark(void)
{
	char n[32], t[32];
	const char *device = disk[0] ? scratch_disk(disk) : "/dev/ram0";
	char *mkfs[] = { "/usr/sbin/mkfs.xfs", "-q", "-f", "-L", OUR_LABEL, (char *)device, NULL };
	char *arguments[] = { "/usr/bin/fs_mark", "-d", "/mnt/marks", "-n", n, "-s", "4096",
			      "-t", t, "-S", "1", "-k", NULL };

	wait_for(start("/tmp/mkfs.out", mkfs), "mkfs.xfs", "/tmp/mkfs.out");
	must_mount(device, "/mnt", "xfs", NULL);
	mkdir("/mnt/marks", 0755);
	if (chdir("/tmp"))
		fail("there is no /tmp");
	snprintf(n, sizeof(n), "%ld", operations);
	snprintf(t, sizeof(t), "%ld", processes);
	begin();
	wait_for(start("/tmp/fs_mark.out", arguments), "fs_mark", "/tmp/fs_mark.out");
	end();
	/* Another run in this kernel makes it anew. */
	if (umount2("/mnt", 0))
		fail("cannot unmount %s: %s", device, strerror(errno));
	say("unit file");
	say("work %ld", operations * processes);
}

/* ---- spinlock-matrix: threads of the kernel, in a kernel with our patch ---- */

#define MOST_CELLS 1024

static struct cell {
	long threads, critical, non_critical;
	long total, ns, least, most;
} cells[MOST_CELLS];

/* The next number of a list, as "1,2,4". */
static int next(char **list, long *number)
{
	if (!**list)
		return 0;
	*number = strtol(*list, list, 10);
	if (**list == ',')
		++*list;
	else if (**list)
		fail("a list of the plan has '%s'", *list);
	return 1;
}

static void run_cell(int matrix, struct cell *cell, long acquisitions)
{
	char text[128];
	ssize_t n;

	n = snprintf(text, sizeof(text), "%ld %ld %ld %ld", cell->threads, cell->critical,
		     cell->non_critical, acquisitions);
	if (write(matrix, text, n) != n)
		fail(errno == EIO ? "the lock let in two at once (cell %s)" :
				    "the kernel refuses the cell %s", text);
	n = pread(matrix, text, sizeof(text) - 1, 0);
	if (n <= 0)
		fail("the kernel's spinlock matrix does not answer");
	text[n] = 0;
	if (sscanf(text, "%ld %ld %ld %ld", &cell->total, &cell->ns, &cell->least,
		   &cell->most) != 4)
		fail("the kernel's spinlock matrix says '%s'", text);
	if (cell->ns <= 0 || cell->total <= 0)
		fail("a cell of the matrix is too short for the guest's clock; give more "
		     "operations");
}

static void run_spinlock_matrix(void)
{
	int matrix = open("/proc/locklab_spinlock_matrix", O_RDWR | O_CLOEXEC);
	struct cell warm = { .critical = 1, .non_critical = 1 };
	char *in_threads = threads, *in_critical, *in_non;
	long work = 0, count = 0, t, c, n;

	if (matrix < 0)
		fail("this kernel has no /proc/locklab_spinlock_matrix; it takes "
		     "spinlock-matrix.patch and its option");
	while (next(&in_threads, &t))
		for (in_critical = critical; next(&in_critical, &c);)
			for (in_non = non_critical; next(&in_non, &n);) {
				if (count == MOST_CELLS)
					fail("the plan has more than %d cells", MOST_CELLS);
				cells[count++] = (struct cell){ .threads = t, .critical = c,
							   .non_critical = n };
				warm.threads = t > warm.threads ? t : warm.threads;
			}
	run_cell(matrix, &warm, operations / 10 + 1);
	begin();
	for (long i = 0; i < count; i++)
		run_cell(matrix, &cells[i], operations);
	end();
	for (long i = 0; i < count; i++) {
		struct cell *at = &cells[i];

		work += at->total;
		say("cell-%ld-%ld-%ld %ld %ld %ld %ld", at->threads, at->critical,
		    at->non_critical, at->total, at->ns, at->least, at->most);
	}
	say("unit acquisition");
	say("work %ld", work);
}

/* ---- locktorture: the kernel's own check of a lock ------------------------- */

static void load_with(const char *name, const char *parameters)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_finit_module, fd, parameters, 0))
		fail("cannot load %s: %s", name, strerror(errno));
	close(fd);
}

static int kernel_log_has(const char *text)
{
	static char log[1 << 18];
	int n = syscall(SYS_syslog, 3 /* SYSLOG_ACTION_READ_ALL */, log, sizeof(log) - 1);

	log[n > 0 ? n : 0] = 0;
	return strstr(log, text) != NULL;
}

static void run_locktorture(void)
{
	char parameters[256];

	load_with("/lab/torture.ko", "");
	snprintf(parameters, sizeof(parameters),
		 "torture_type=%s nwriters_stress=%ld shuffle_interval=0 stutter=0 onoff_interval=0",
		 type[0] ? type : "spin_lock", processes);
	load_with("/lab/locktorture.ko", parameters);
	begin();
	sleep(seconds);
	if (syscall(SYS_delete_module, "locktorture", 0))
		fail("cannot unload locktorture: %s", strerror(errno));
	end();
	if (!kernel_log_has("End of test: SUCCESS"))
		fail("locktorture does not say SUCCESS");
	say("unit second");
	say("work %ld", seconds);
}

/* A fault in /sys/.../vulnerabilities is no failure: old kernels lack it. */
static void say_mitigation(const char *name)
{
	char path[128], text[512];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/vulnerabilities/%s", name);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n > 0) {
		text[text[n - 1] == '\n' ? n - 1 : n] = 0;
		say("mitigation-%s %s", name, text);
	}
}

void run_planned(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	long long elapsed;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	say("booted-ms %lld", begun.tv_sec * 1000LL + begun.tv_nsec / 1000000);
	say_mitigation("spectre_v2");
	if (cpus != vcpus)
		fail("the measured kernel has %ld CPUs instead of %ld", cpus, vcpus);
	/* Only what runs everywhere is left to the scheduler. */
	if (vcpus == 1 || !strncmp(workload, "context-switch", 14))
		pin(0);
	if (counted[0])
		counters_open(counted);
	if (profiled)
		locks_open();
	if (!strcmp(workload, "boot")) {
		begin();
		end();
		say("unit boot");
		say("work 1");
	} else if (!strcmp(workload, "fstat"))
		run_fstat();
	else if (!strcmp(workload, "context-switch"))
		run_context_switch(0);
	else if (!strcmp(workload, "context-switch-threads"))
		run_context_switch(1);
	else if (!strcmp(workload, "nginx-churn"))
		run_nginx();
	else if (!strcmp(workload, "rocksdb-deleteseq"))
		run_deleteseq();
	else if (!strcmp(workload, "fs-mark"))
		run_fs_mark();
	else if (!strcmp(workload, "spinlock-matrix"))
		run_spinlock_matrix();
	else if (!strcmp(workload, "locktorture"))
		run_locktorture();
	else
		fail("there is no workload '%s'", workload);
	elapsed = (ended.tv_sec - begun.tv_sec) * 1000000000LL + ended.tv_nsec - begun.tv_nsec;
	say("elapsed-ns %lld", elapsed);
	counters_say();
	locks_say();
	say("done");
}
