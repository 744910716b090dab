// Right: the mutex of the C part is recorded.
package main
// #include <pthread.h>
// static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
// static long n;
// static void op(void){ pthread_mutex_lock(&m); n++; for(volatile int i=0;i<300;i++); pthread_mutex_unlock(&m); for(volatile int i=0;i<300;i++);}
import "C"
import ("fmt";"sync";"time";"sync/atomic")
func main(){ var stop atomic.Bool; var n int64; var wg sync.WaitGroup
 for i:=0;i<4;i++{wg.Add(1); go func(){defer wg.Done(); for !stop.Load(){C.op(); atomic.AddInt64(&n,1)}}()}
 time.Sleep(2*time.Second); stop.Store(true); wg.Wait(); fmt.Printf("rate %.0f ops/s\n", float64(n)/2)}
