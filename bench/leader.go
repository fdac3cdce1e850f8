//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/soloist-go/soloist/bench/internal/runs"
	"github.com/soloist-go/soloist/internal/proctest"
)

// killLeader kills the replica that leads, n times, at any moment between two renewals.
func killLeader(n int) faults {
	return func(ctx context.Context, f *fleet) error {
		lease := f.settings.Lease
		for range n {
			// A replica that was started again has found the leader by then.
			if err := proctest.Pause(ctx, 2*time.Second+lease+rand.N(lease)); err != nil {
				return err
			}
			name, err := f.runner(ctx, time.Time{}, "", time.Minute)
			if err != nil {
				return err
			}
			killed := time.Now()
			if err := f.signal(runs.Kill, name); err != nil {
				return err
			}
			<-f.replicas[name].Gone()
			if _, err := f.runner(ctx, killed, "", time.Minute); err != nil {
				return err
			}
			if err := f.start(name); err != nil {
				return err
			}
		}
		return nil
	}
}

// leases reads the lengths of the lease of a leader, such as 3s,1s.
func leases(text string) (all []time.Duration, err error) {
	for part := range strings.SplitSeq(text, ",") {
		d, perr := time.ParseDuration(part)
		if perr != nil || d < time.Second || d > time.Minute || d%time.Second != 0 {
			err = errors.Join(err, fmt.Errorf("-lease: %q: want whole seconds from 1s to 60s, with commas between them", part))
		}
		all = append(all, d)
	}
	return all, err
}
