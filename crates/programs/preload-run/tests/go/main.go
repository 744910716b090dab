package main

import (
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

var mutex sync.Mutex
var total int

func hold() {
	mutex.Lock()
	total++
	end := time.Now().Add(200 * time.Microsecond)
	for time.Now().Before(end) {
	}
	mutex.Unlock()
}

func main() {
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	var wait sync.WaitGroup
	for i := 0; i < 4; i++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for j := 0; j < 200; j++ {
				hold()
			}
		}()
	}
	wait.Wait()
	for _, name := range []string{"mutex", "block"} {
		file, _ := os.Create(name + ".pb.gz")
		pprof.Lookup(name).WriteTo(file, 0)
		file.Close()
	}
}
