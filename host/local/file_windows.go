package local

import (
	"os"
	"syscall"
)

const (
	diskFull  = syscall.Errno(112)  // ERROR_DISK_FULL
	quotaFull = syscall.Errno(1295) // ERROR_DISK_QUOTA_EXCEEDED
)

// openDir does nothing: Windows has no call for flush, and NTFS journals names.
func openDir(string) (*os.File, error) { return nil, nil }

func flush(*os.File) error { return nil }
