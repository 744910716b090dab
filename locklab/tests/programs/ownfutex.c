/* gcc -O2 -pthread ownfutex.c; ./ownfutex: four threads hold a futex lock of the program's own
   while they sleep 500 us, for a second; a pthread mutex is taken once. With a lock for each
   thread it is four times as fast: 'record' must say that it does not see what is waited for. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int word, stop;
static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

static void take(void) {
    int seen = 0;
    if (atomic_compare_exchange_strong(&word, &seen, 1))
        return;
    while (atomic_exchange(&word, 2))
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0);
}

static void give(void) {
    if (atomic_exchange(&word, 0) == 2)
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

static void *body(void *none) {
    while (!stop) {
        take();
        usleep(500);
        give();
    }
    return none;
}

int main(void) {
    pthread_t threads[4];
    pthread_mutex_lock(&once);
    pthread_mutex_unlock(&once);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, body, 0);
    sleep(1);
    stop = 1;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    return 0;
}
