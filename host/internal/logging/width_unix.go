//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package logging

import (
	"os"
	"syscall"
	"unsafe"
)

// columnsOf asks a terminal; zero: it is none, or does not know.
func columnsOf(f *os.File) int {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	var size struct{ rows, columns, x, y uint16 } // struct winsize
	raw.Control(func(fd uintptr) {
		syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	})
	return int(size.columns)
}
