package local

import "time"

// Machine tells what the clocks of a machine show: the wall clock, the time
// since it started, and the id of that start, empty if it does not tell.
type Machine func() (wall time.Time, boot time.Duration, start string)

// On returns the directory as a process of that machine sees it.
func (d Dir) On(m Machine) Dir {
	d.clock = func() instant {
		wall, boot, start := m()
		return instant{wall.UTC().Round(0), boot, start}
	}
	return d
}

// Stopping returns the directory with a function that is called before each of its file operations.
func (d Dir) Stopping(before func(op, path string)) Dir {
	d.disk.before = before
	return d
}
