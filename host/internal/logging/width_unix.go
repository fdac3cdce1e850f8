//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package logging

import (
	"os"

	"golang.org/x/sys/unix"
)

// columnsOf asks a terminal; zero: it is none, or does not know.
func columnsOf(f *os.File) (n int) {
	if raw, err := f.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			if size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil {
				n = int(size.Col)
			}
		})
	}
	return n
}
