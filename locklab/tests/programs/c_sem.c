/* Two threads contend: 0 for a semaphore, 1 for a spinlock. Right: an answer by the kernel's
 * events, never "0 %" without a word. */
#include <semaphore.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static sem_t s; static pthread_spinlock_t sp; static pthread_barrier_t b; static long n; static volatile int stop;
static int mode;
static void *f(void*a){ long c=0; if(mode==2) pthread_barrier_wait(&b);
 while(!stop){ if(mode==0){sem_wait(&s); n++; for(volatile int i=0;i<100;i++); sem_post(&s);} else if(mode==1){pthread_spin_lock(&sp); n++; for(volatile int i=0;i<100;i++); pthread_spin_unlock(&sp);} else {if(c>200000)break; pthread_barrier_wait(&b);} for(volatile int i=0;i<200;i++); c++;} return (void*)c;}
int main(int argc,char**argv){ mode=atoi(argv[1]); int T=argc>2?atoi(argv[2]):2; sem_init(&s,0,1); pthread_spin_init(&sp,0); pthread_barrier_init(&b,0,T); pthread_t t[64]; struct timespec a,z; clock_gettime(CLOCK_MONOTONIC,&a); for(int i=0;i<T;i++)pthread_create(&t[i],0,f,0); if(mode!=2){struct timespec d={0,400000000}; nanosleep(&d,0);} stop=mode!=2; long tot=0; for(int i=0;i<T;i++){void*r;pthread_join(t[i],&r);tot+=(long)r;} clock_gettime(CLOCK_MONOTONIC,&z); double e=(z.tv_sec-a.tv_sec)+(z.tv_nsec-a.tv_nsec)/1e9; printf("rate %.0f ops/s (%ld in %.2f s) n=%ld\n",tot/e,tot,e,n); return 0;}
