//go:build unix

package main

import (
	"context"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
)

// of are the jobs, or the singletons, of a version. They do nothing.
func of[W soloist.Work](version string) (all []W) {
	for _, w := range (&program{}).works(version) {
		if one, ok := w.(W); ok {
			all = append(all, one)
		}
	}
	return all
}

// schedules are the intervals of the jobs of a version. Their ticks are the
// multiples.
func schedules(version string) map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, j := range of[soloist.Job](version) {
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
		all := of[soloist.Job](version)
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
