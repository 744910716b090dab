/* Right: what waits in a critical section of OpenMP is seen by the kernel, or named as not seen. */
#include <omp.h>
#include <stdio.h>
int main(){ double a=omp_get_wtime(); long n=0; 
#pragma omp parallel num_threads(4)
 { for(int i=0;i<3000000;i++){
#pragma omp critical
  { n++; for(volatile int j=0;j<300;j++); } for(volatile int j=0;j<300;j++); } }
 printf("rate %.0f ops/s n=%ld\n", n/(omp_get_wtime()-a), n); }
