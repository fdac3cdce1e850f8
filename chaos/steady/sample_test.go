//go:build linux

package main

import (
	"io"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	got, err := parse(strings.NewReader(`# HELP go_goroutines Number of goroutines
go_goroutines 41
process_resident_memory_bytes 3.1457280e+07
process_open_fds 12
soloist_runs_total{job_name="a b",outcome="failed"} 3
soloist_runs_total{job_name="c",outcome="succeeded"} 4
soloist_running{job_name="c"} 1
`))
	if want := (sample{goroutines: 41, rss: 30 << 20, files: 12, runs: 7}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := parse(strings.NewReader("go_goroutines many\n")); err == nil {
		t.Error("no error of a value that is no number")
	}
}

func TestJudgeFindsWhatGrows(t *testing.T) {
	for name, change := range map[string]func(s *sample, n float64){
		"":                       func(*sample, float64) {},
		"resident memory in MiB": func(s *sample, n float64) { s.rss += n * (1 << 20) },
		"goroutines":             func(s *sample, n float64) { s.goroutines += n },
		"open files":             func(s *sample, n float64) { s.files += n },
		"no job has run":         func(s *sample, _ float64) { s.runs = 0 },
	} {
		var all []sample
		for n := range 40 {
			s := sample{rss: 30 << 20, goroutines: 40, files: 12, runs: float64(n)}
			change(&s, float64(n))
			all = append(all, s)
		}
		err := judge(io.Discard, all, 3)
		if (err == nil) != (name == "") || err != nil && !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}
