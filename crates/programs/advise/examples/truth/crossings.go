// Goroutines that call C, which holds one mutex of pthread: the threads are Go's, the lock is
// glibc's.
package main

// #include <pthread.h>
// static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// static void turn(void) {
//     pthread_mutex_lock(&lock);
//     for (volatile int step = 0; step < 300; step++)
//         ;
//     pthread_mutex_unlock(&lock);
//     for (volatile int step = 0; step < 300; step++)
//         ;
// }
import "C"

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	var over atomic.Bool
	var turns atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for !over.Load() {
				C.turn()
				turns.Add(1)
			}
		}()
	}
	time.Sleep(time.Second)
	over.Store(true)
	all.Wait()
	fmt.Println("rate", turns.Load())
}
