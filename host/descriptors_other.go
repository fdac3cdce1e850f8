//go:build !unix

package host

// descriptors is zero: Windows has no such limit.
func descriptors() int { return 0 }
