/* A futex wait at which a thread may be cancelled.
 *
 * pthread_cond_wait is a cancellation point: a thread cancelled there takes
 * the mutex again before its own cleanup handlers run. Unwinding through Rust
 * destructors is not defined, and pthread_cleanup_push is a C macro; so this
 * function, and nothing else, is C. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <errno.h>

/* Waits until *word is not `expected`, a wake-up, or the absolute time
 * `until` (NULL: none) of the clock that `operation` names. Returns 0 or a
 * positive errno. `cancelled(argument)` runs if the thread is cancelled. */
__attribute__((visibility("hidden"))) int
locklab_wait_cancellable(uint32_t *word, int operation, uint32_t expected,
                         const struct timespec *until,
                         void (*cancelled)(void *), void *argument)
{
    long result;
    int type;
    int saved = errno;
    pthread_cleanup_push(cancelled, argument);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    result = syscall(SYS_futex, word, operation, expected, until, NULL,
                     FUTEX_BITSET_MATCH_ANY);
    result = result == -1 ? errno : 0;
    pthread_setcanceltype(type, NULL);
    pthread_cleanup_pop(0);
    errno = saved;
    return (int)result;
}
