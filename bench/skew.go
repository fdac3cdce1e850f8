//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// skewed are the files of the standard library for a program whose wall clock is wrong by BENCH_SKEW, in all of its libraries.
// Elapsed time is right, as on a machine whose clock is wrong.
func skewed() (map[string][]byte, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	name := filepath.Join(dir, "time.go")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	const reads = "sec, nsec, mono := runtimeNow()"
	if bytes.Count(text, []byte(reads)) != 1 {
		return nil, errors.New(name + " reads the clock in another way than this bench knows: adapt skew.go")
	}
	return map[string][]byte{
		name:                                bytes.Replace(text, []byte(reads), []byte("sec, nsec, mono := skewedNow()"), 1),
		filepath.Join(dir, "bench_skew.go"): []byte(skewedNow),
	}, nil
}

const skewedNow = `package time

import "syscall"

var skew = func() Duration {
	text, _ := syscall.Getenv("BENCH_SKEW")
	d, _ := ParseDuration(text)
	return d
}()

func skewedNow() (sec int64, nsec int32, mono int64) {
	sec, nsec, mono = runtimeNow()
	n := int64(nsec) + int64(skew%Second) + int64(Second)
	return sec + int64(skew/Second) + n/int64(Second) - 1, int32(n % int64(Second)), mono
}
`
