//go:build !unix

package descriptors

// Limit is zero: Windows has no such limit.
func Limit() int { return 0 }
