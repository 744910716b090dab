/* The functions that a lock calls when it runs on this machine's own CPUs. */
struct locklab_host {
	unsigned (*cpu)(void);
	unsigned (*node)(void);
	void (*fail)(const char *text, const char *file, unsigned line);
};

/* Set when the library has been loaded. */
struct locklab_host locklab_host;

__attribute__((visibility("hidden"))) unsigned lab_cpu(void) { return locklab_host.cpu(); }
__attribute__((visibility("hidden"))) unsigned lab_node(void) { return locklab_host.node(); }

__attribute__((visibility("hidden"), noreturn)) void
__assert_fail(const char *text, const char *file, unsigned line, const char *function)
{
	(void)function;
	locklab_host.fail(text, file, line);
	__builtin_trap();
}
__attribute__((visibility("hidden"), noreturn)) void abort(void)
{
	locklab_host.fail("abort", "", 0);
	__builtin_trap();
}
