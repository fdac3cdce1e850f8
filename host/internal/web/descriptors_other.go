//go:build !unix

package web

// descriptors is zero: Windows has no such limit.
func descriptors() int { return 0 }
