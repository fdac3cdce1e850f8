//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// taken is what a process has taken.
type taken struct {
	cpu time.Duration
	rss float64 // MiB
}

// look reads what a process has taken so far (proc(5)).
func look(pid int) (t taken, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return t, err
	}
	// The second field is the name, in parentheses, and may have blanks.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const utime, stime, rss = 14 - 3, 15 - 3, 24 - 3
	if len(fields) <= rss {
		return t, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	var n [3]int
	for i, field := range []int{utime, stime, rss} {
		if n[i], err = strconv.Atoi(fields[field]); err != nil {
			return t, err
		}
	}
	const tick = 10 * time.Millisecond // a hundred a second, on all Linux
	return taken{time.Duration(n[0]+n[1]) * tick, float64(n[2]*os.Getpagesize()) / (1 << 20)}, nil
}
