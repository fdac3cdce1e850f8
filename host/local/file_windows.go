package local

import "syscall"

const (
	diskFull  = syscall.Errno(112)  // ERROR_DISK_FULL
	quotaFull = syscall.Errno(1295) // ERROR_DISK_QUOTA_EXCEEDED
)

// syncDir does nothing: Windows has no such call, and NTFS journals names.
func syncDir(string) error { return nil }
