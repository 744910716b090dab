/* Right: with 200 sleepers as with none, a large part of the time in which threads had work
 * is spent waiting; threads that sleep until the end are no part of it. */
/* Two threads contend for one mutex, which each holds while it sleeps, so that the other waits
 * however busy the machine is; K threads are blocked in read(2)/sem_wait/pause until the program ends. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static volatile int stop; static sem_t s; static int pfd[2]; static long n;
static void *idle(void *a) { if ((long)a) { char c; if (read(pfd[0], &c, 1)) {} } else sem_wait(&s); return 0; }
static void *f(void *a) { long c = 0; while (!stop) { pthread_mutex_lock(&m); n++; usleep(200); pthread_mutex_unlock(&m); for (volatile int i = 0; i < 2000; i++); c++; } return (void *)c; }
int main(int argc, char **argv) { int K = argc > 1 ? atoi(argv[1]) : 0; long how = argc > 2 ? atoi(argv[2]) : 0; pthread_t t[2], x; if (pipe(pfd)) return 1; sem_init(&s, 0, 0);
 for (int i = 0; i < K; i++) pthread_create(&x, 0, idle, (void *)how);
 for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, f, 0);
 /* Long enough for who looks for processes with some CPU time, and looks half as often each time. */
 time_t begin = time(0); while (clock() < CLOCKS_PER_SEC / 20) ;
 struct timespec d = {2 * (time(0) - begin), 400000000}; nanosleep(&d, 0); stop = 1; long tot = 0; for (int i = 0; i < 2; i++) { void *r; pthread_join(t[i], &r); tot += (long)r; }
 printf("rate %.0f ops/s\n", tot / 2.0); return 0; }
