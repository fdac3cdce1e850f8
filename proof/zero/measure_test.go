//go:build linux

package main

import (
	"io"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/internal/azurite"
)

// Forty minutes at a pace of 60, as an app and as a job: each is scaled to zero, woken up and started anew several times.
func TestTicksStartOnTimeFromZero(t *testing.T) {
	azurite.Shared(t) // or skip the test
	for name, args := range map[string]string{"app": "-cooldown 1m", "job": "-job"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := parse(append(strings.Fields(args), "-for", "40m", "-pace", "60", "-schedule", "@every 10m", "-schedule", "@every 20m"), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			story, failures, err := measure(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			ticks, err := story.Ticks()
			if err != nil {
				t.Fatal(err)
			}
			if err := o.verdict(t.Output(), story, ticks, failures); err != nil {
				t.Error(err)
			}
			if up, length := story.ReplicaTime(), story.To.Sub(story.From); len(story.Wakes) < 2 || up > length*9/10 {
				t.Errorf("woken %d times, and up for %s of %s: it was not scaled to zero", len(story.Wakes), up, length)
			}
		})
	}
}
