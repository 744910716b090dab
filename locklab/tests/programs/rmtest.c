/* Right: the lock is robust and shared by processes, which `run` and `compare` leave as it is,
 * so no other lock is advised. */
/* two threads contend for a robust / process-shared mutex */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <sys/mman.h>
static pthread_mutex_t *m; static volatile int stop; static long n;
static void *f(void *a) { long c = 0; while (!stop) { pthread_mutex_lock(m); n++; for (volatile int i = 0; i < 2000; i++); pthread_mutex_unlock(m); for (volatile int i = 0; i < 500; i++); c++; } return (void *)c; }
int main(int argc, char **argv) { m = mmap(0, 4096, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS, -1, 0); pthread_mutexattr_t at; pthread_mutexattr_init(&at); pthread_mutexattr_setpshared(&at, PTHREAD_PROCESS_SHARED); if (argc > 1) pthread_mutexattr_setrobust(&at, PTHREAD_MUTEX_ROBUST); pthread_mutex_init(m, &at);
 pthread_t t[2]; for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, f, 0);
 struct timespec d = {0, 400000000}; nanosleep(&d, 0); stop = 1; long tot = 0; for (int i = 0; i < 2; i++) { void *r; pthread_join(t[i], &r); tot += (long)r; } printf("rate %.0f ops/s\n", tot / 2.0); return 0; }
