/* Right: an answer. It is no deadlock in the simulation, since the program ran. */
/* T threads. "big" is a lock made of a mutex and a condition (Python's GIL, a bounded
   pool, a token ...); M is a plain mutex. As in CPython extensions: big is dropped around
   the blocking lock of M, and taken again while M is held. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static pthread_mutex_t g = PTHREAD_MUTEX_INITIALIZER, M = PTHREAD_MUTEX_INITIALIZER; static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int locked; static volatile int stop; static long n[16];
static void work(int k) { for (volatile int i = 0; i < k; i++); }
static void take(void) { pthread_mutex_lock(&g); while (locked) pthread_cond_wait(&c, &g); locked = 1; pthread_mutex_unlock(&g); }
static void drop(void) { pthread_mutex_lock(&g); locked = 0; pthread_cond_signal(&c); pthread_mutex_unlock(&g); }
static void *f(void *a) { long k = (long)a; take(); while (!stop) { drop(); pthread_mutex_lock(&M); take(); work(2000); drop(); take(); pthread_mutex_unlock(&M); work(2000); n[k]++; } drop(); return 0; }
int main(int argc, char **argv) { int T = argc > 1 ? atoi(argv[1]) : 4; pthread_t t[16]; for (long i = 0; i < T; i++) pthread_create(&t[i], 0, f, (void *)i);
 struct timespec d = {0, 400000000}; nanosleep(&d, 0); stop = 1; long s = 0; for (int i = 0; i < T; i++) { pthread_join(t[i], 0); s += n[i]; } printf("rate %ld ops/s\n", s / 2); return 0; }
