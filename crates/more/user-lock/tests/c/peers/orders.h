/* The orderings of the peers' suites, and the weakened ones. */
#include <locklab_lock.h>
#include <stdatomic.h>

#ifdef ACQ2RX
#define ACQUIRE memory_order_relaxed
#else
#define ACQUIRE memory_order_acquire
#endif
#ifdef REL2RX
#define RELEASE memory_order_relaxed
#else
#define RELEASE memory_order_release
#endif
