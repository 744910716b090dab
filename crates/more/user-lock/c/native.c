/* The functions that a lock calls when it runs on this machine's own CPUs. */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of the system's interface; not every C library brings its header. */
enum { FUTEX_WAIT, FUTEX_WAKE, FUTEX_PRIVATE_FLAG = 128 };

#define HIDDEN __attribute__((visibility("hidden")))

struct locklab_host {
	unsigned (*cpu)(void);
	unsigned (*node)(void);
	void (*fail)(const char *text, const char *file, unsigned line);
};

/* Set when the library has been loaded. */
struct locklab_host locklab_host;

HIDDEN unsigned lab_cpu(void) { return locklab_host.cpu(); }
HIDDEN unsigned lab_node(void) { return locklab_host.node(); }

__attribute__((visibility("hidden"), noreturn)) void
__assert_fail(const char *text, const char *file, unsigned line, const char *function)
{
	(void)function;
	locklab_host.fail(text, file, line);
	__builtin_trap();
}
__attribute__((visibility("hidden"), noreturn)) void abort(void)
{
	locklab_host.fail("abort()", "", 0);
	__builtin_trap();
}

static long futex(const volatile void *word, int operation, unsigned value, const char *call)
{
	long done = syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, 0, 0, 0);
	if (done < 0 && (errno == EINVAL || errno == EFAULT)) {
		locklab_host.fail(call, "", 0);
		__builtin_trap();
	}
	return done;
}

HIDDEN int lab_futex_wait(const volatile void *word, unsigned expected)
{
	return (int)futex(word, FUTEX_WAIT, expected, "lab_futex_wait() with no aligned word");
}

HIDDEN int lab_futex_wake(const volatile void *word, unsigned count)
{
	return (int)futex(word, FUTEX_WAKE, count, "lab_futex_wake() with no aligned word");
}
