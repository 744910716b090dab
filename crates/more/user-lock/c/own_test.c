/* What a test needs beside the functions of own_test/calls.rs: the run of a thread,
 * which pthread_exit leaves, and thread-local data.
 */
#define HIDDEN __attribute__((visibility("hidden"), used))
#define SITE __builtin_return_address(0)

struct locklab_test {
	long (*call)(unsigned, long, long, long, long, void *);
};

/* Set when the library has been loaded. */
struct locklab_test locklab_test;

/* Runs a function of a thread, which may leave early. */
__attribute__((noinline)) long locklab_run(long (*function)(long, long), long a, long b, void **way)
{
	if (__builtin_setjmp(way))
		return 0;
	return function(a, b);
}

__attribute__((noreturn)) void locklab_leave(void **way) { __builtin_longjmp(way, 1); }

/* Streams of stdio: nothing is printed. */
HIDDEN void *stdin, *stdout, *stderr;
