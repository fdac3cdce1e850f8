//go:build unix

// Package descriptors tells how many descriptors the process may have. The
// connections of HTTP and those to the store take their shares of them.
package descriptors

import (
	"math"
	"syscall"
)

// Limit is how many files and connections the process may have open, zero
// if that is not known.
func Limit() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), math.MaxInt32))
}
