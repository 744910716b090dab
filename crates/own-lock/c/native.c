/* The functions that a lock calls when it runs on this machine's own CPUs. */
struct locklab_host {
	unsigned (*cpu)(void);
	unsigned (*node)(void);
};

/* Set when the library has been loaded. */
struct locklab_host locklab_host;

__attribute__((visibility("hidden"))) unsigned lab_cpu(void) { return locklab_host.cpu(); }
__attribute__((visibility("hidden"))) unsigned lab_node(void) { return locklab_host.node(); }
