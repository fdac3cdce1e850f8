// Package instant has min and max for instants. The built-in ones do not take a
// [time.Time], and a comparison that is written out is easy to turn round by mistake:
// watermarks, starts and the bounds of clocks all depend on its direction.
package instant

import "time"

// Later returns the later of two instants.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Earlier returns the earlier of two instants.
func Earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
