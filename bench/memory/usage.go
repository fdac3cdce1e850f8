//go:build linux

package main

import (
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

// cpu is the time that this process had on all processors.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // of wrong arguments alone
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// used is the memory that this process needs: what is reachable, and the stacks.
func used() int64 {
	runtime.GC() // twice: finalizers run in between
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
