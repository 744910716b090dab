/* Right: a process of the program still runs, and is not in the recording. */
/* double-forking daemon: parent exits at once; the daemon works until there is a file END, for at most 20 s */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static volatile int stop; static long n;
static void *f(void *a) { while (!stop) { pthread_mutex_lock(&m); n++; for (volatile int i = 0; i < 2000; i++); pthread_mutex_unlock(&m); for (volatile int i = 0; i < 2000; i++); } return 0; }
int main(int argc,char**argv) { if (fork()) _exit(0); setsid(); if (fork()) _exit(0); if(argc>1) daemon(1, 0); pthread_t t[2]; for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, f, 0); for (int i = 0; i < 2000 && access("END", F_OK); i++) usleep(10000); stop = 1; for (int i = 0; i < 2; i++) pthread_join(t[i], 0); FILE *o = fopen("SCRATCH", "w"); fprintf(o, "rate %ld\n", n / 2); fclose(o); return 0; }
