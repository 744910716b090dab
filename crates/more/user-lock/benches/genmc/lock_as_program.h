/* Turns the file of a lock into part of a program: its types have names that client.c knows.
 * GenMC has no functions of Locklab's, so it gets these here. */
#include <locklab_lock.h>
#undef LOCKLAB_LOCK
#define LOCKLAB_LOCK(NAME, TYPE, CONTEXT) \
	typedef TYPE client_lock;         \
	typedef CONTEXT client_context

#ifdef GENMC
static __thread unsigned client_cpu;
void lab_relax(void) {}
unsigned lab_cpu(void) { return client_cpu; }
unsigned lab_node(void) { return 0; }
#define CLIENT_CPU(NUMBER) (client_cpu = (NUMBER))
#else
#define CLIENT_CPU(NUMBER) ((void)0)
#endif
