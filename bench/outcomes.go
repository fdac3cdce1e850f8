//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/bench/internal/runs"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/store"
)

// outcomes counts the ticks of a window by what the record of the first job says of them: the
// outcome, "none", or "several".
func outcomes(ctx context.Context, f *fleet, w runs.Window) (map[string]int, error) {
	s, err := azure.Open(azure.Config{ConnectionString: f.settings.Service, Container: f.settings.Space})
	if err != nil {
		return nil, err
	}
	j := f.jobs[0]
	e, err := s.Read(ctx, "bench/"+j.Name)
	if err != nil {
		return nil, err
	}
	var record store.Record
	if err := json.Unmarshal(e.Record, &record); err != nil {
		return nil, fmt.Errorf("the record of %s: %w", j.Name, err)
	}
	all := map[string]int{}
	for tick := w.Begin; tick.Before(w.End); tick = tick.Add(j.Every) {
		all[outcome(record, tick)]++
	}
	return all, nil
}

// outcome is what a record says of a tick.
func outcome(r store.Record, tick time.Time) string {
	found := "none"
	for _, o := range r.History {
		inRange := !o.From.IsZero() && tick.After(o.From) && tick.Before(o.Tick)
		if o.Request != "" || !inRange && !tick.Equal(o.Tick) {
			continue
		}
		if found != "none" {
			return "several"
		}
		found = string(o.Status)
	}
	return found
}
