//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// A sample is what a replica takes at one moment, and what it has done.
type sample struct {
	replica                      string
	after                        time.Duration
	rss, goroutines, files, runs float64
}

// look takes a sample of a replica from its metrics.
func look(ctx context.Context, url string) (s sample, err error) {
	body, err := get(ctx, url+"/metrics")
	if err != nil {
		return s, err
	}
	defer body.Close()
	s, err = parse(body)
	if err == nil && (s.rss == 0 || s.goroutines == 0 || s.files == 0) {
		err = errors.New("its metrics do not tell its memory, goroutines and files")
	}
	return s, err
}

// parse reads a sample from metrics in the text format of Prometheus.
func parse(metrics io.Reader) (s sample, err error) {
	lines := bufio.NewScanner(metrics)
	for lines.Scan() {
		line := lines.Text()
		cut := strings.LastIndexByte(line, ' ')
		if cut < 0 || line[0] == '#' {
			continue
		}
		name, _, _ := strings.Cut(line[:cut], "{")
		to := map[string]*float64{"go_goroutines": &s.goroutines, "process_resident_memory_bytes": &s.rss, "process_open_fds": &s.files, "soloist_runs_total": &s.runs}[name]
		if to == nil {
			continue
		}
		value, err := strconv.ParseFloat(line[cut+1:], 64)
		if err != nil {
			return s, fmt.Errorf("%s: %w", line, err)
		}
		*to += value
	}
	return s, lines.Err()
}

// judge compares the last quarter of the samples with the second one, and returns what grew.
func judge(out io.Writer, samples []sample, replicas int) (grown error) {
	quarter := len(samples) / 4
	second, last := mean(samples[quarter:2*quarter]), mean(samples[len(samples)-quarter:])
	for _, m := range []struct {
		name      string
		was, is   float64
		tolerance float64 // in its own unit: what comes and goes
	}{
		{"resident memory in MiB", second.rss / (1 << 20), last.rss / (1 << 20), 2},
		{"goroutines", second.goroutines, last.goroutines, 3},
		{"open files", second.files, last.files, 3},
	} {
		fmt.Fprintf(out, "%s: %.1f in the second quarter, %.1f in the last: %.2f times\n", m.name, m.was, m.is, m.is/m.was)
		if m.is > 1.1*m.was+m.tolerance {
			grown = errors.Join(grown, fmt.Errorf("%s grew from %.1f to %.1f", m.name, m.was, m.is))
		}
	}
	runs := 0.0
	for _, s := range samples[len(samples)-replicas:] {
		runs += s.runs
	}
	fmt.Fprintf(out, "runs: %.0f\n", runs)
	if runs == 0 {
		grown = errors.Join(grown, errors.New("no job has run"))
	}
	return grown
}

// mean is the mean of samples.
func mean(all []sample) (m sample) {
	n := float64(len(all))
	for _, s := range all {
		m.rss, m.goroutines, m.files = m.rss+s.rss/n, m.goroutines+s.goroutines/n, m.files+s.files/n
	}
	return m
}
