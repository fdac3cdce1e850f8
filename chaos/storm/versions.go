//go:build unix

package main

import (
	"context"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
)

// jobs are those of a version, which do nothing.
func jobs(version string) (all []soloist.Job) {
	for _, w := range (&program{}).works(version) {
		if j, ok := w.(soloist.Job); ok {
			all = append(all, j)
		}
	}
	return all
}

func singletons() (all []soloist.Singleton) {
	for _, w := range (&program{}).works("1") {
		if g, ok := w.(soloist.Singleton); ok {
			all = append(all, g)
		}
	}
	return all
}

// schedules are the intervals of the jobs of a version. Their ticks are the
// multiples.
func schedules(version string) map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, j := range jobs(version) {
		out[j.Name] = time.Minute
		if text, ok := strings.CutPrefix(j.Schedule, "@every "); ok {
			out[j.Name], _ = time.ParseDuration(text)
		}
	}
	return out
}

// specs are the hashes of the schedules in records, and the intervals.
func specs() (map[string]time.Duration, error) {
	out := map[string]time.Duration{}
	for _, version := range []string{"1", "2"} {
		all := jobs(version)
		for i := range all {
			all[i].Do = func(context.Context, *soloist.Run) error { return nil }
		}
		s := &soloist.Scheduler{Store: &local.Memory{}, Jobs: all}
		if _, err := s.RunDue(context.Background(), soloist.Wake{}); err != nil {
			return nil, err
		}
		records, err := s.Status(context.Background())
		if err != nil {
			return nil, err
		}
		for _, st := range records {
			out[st.Record.Definition.Spec] = schedules(version)[st.Name]
		}
	}
	return out, nil
}
