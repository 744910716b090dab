// So many goroutines hold one mutex of Go for so many steps, and think for as many: the rate is in
// steps under the lock, so that longer sections do not count as fewer.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

func steps(value, count uint64) uint64 {
	for ; count > 0; count-- {
		value = value*6364136223846793005 + 1442695040888963407
	}
	return value
}

func main() {
	threads, _ := strconv.ParseUint(os.Args[1], 10, 32)
	hold, _ := strconv.ParseUint(os.Args[2], 10, 32)
	var over atomic.Bool
	var lock sync.Mutex
	var shared, turns, sink uint64
	var all sync.WaitGroup
	for me := range threads {
		all.Add(1)
		go func() {
			defer all.Done()
			own := me
			for !over.Load() {
				lock.Lock()
				shared = steps(shared, hold)
				turns++
				lock.Unlock()
				own = steps(own, hold)
			}
			atomic.AddUint64(&sink, own)
		}()
	}
	time.Sleep(time.Second)
	over.Store(true)
	all.Wait()
	fmt.Println("rate", turns*hold)
}
