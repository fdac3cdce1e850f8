// Package profile writes profiles of a process into the directory that the environment variable
// PROFILE names.
package profile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
)

// Start profiles CPU and allocations until it is stopped. Without PROFILE it does nothing.
func Start(name string) (stop func() error, err error) {
	dir := os.Getenv("PROFILE")
	if dir == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("PROFILE: %w", err)
	}
	file, err := os.Create(filepath.Join(dir, name+".cpu.pprof"))
	if err != nil {
		return nil, fmt.Errorf("PROFILE: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		allocations, err := os.Create(filepath.Join(dir, name+".allocs.pprof"))
		if err != nil {
			return errors.Join(err, file.Close())
		}
		return errors.Join(file.Close(), pprof.Lookup("allocs").WriteTo(allocations, 0), allocations.Close())
	}, nil
}
