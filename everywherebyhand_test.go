package soloist_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// A run by hand of a job that runs on each replica knows its request.
func TestRunNowEverywhereTellsItsRequest(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var got *soloist.Run
		a := c.start("a", here("@hourly", func(_ context.Context, r *soloist.Run) error { got = r; r.Log.Info("it works"); return nil }))
		outcome, err := a.RunNow(c.t.Context(), "here", "ann")
		if err != nil || got.Request != "ann" || got.ID() != "here@ann" || outcome.Request != "ann" {
			t.Errorf("got the run %q of request %q, %+v, %v", got.ID(), got.Request, outcome, err)
		}
		if a.log.lines("it works", "request=ann") == nil {
			t.Error("the run's log does not tell the request")
		}
	})
}

// A run by hand ends while the tick beside it goes on, which is neither over nor
// stuck.
func TestRunNowEverywhereBesideATick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", here("0 1 0 * * *", func(_ context.Context, r *soloist.Run) error {
			if r.Request == "" {
				time.Sleep(20 * time.Minute)
			}
			return nil
		}))
		time.Sleep(2 * time.Minute)
		if _, err := a.RunNow(c.t.Context(), "here", "ann"); err != nil {
			t.Fatal(err)
		}
		for range 15 {
			if h := a.Health(); !slices.Equal(h.Running, []string{"here"}) || len(h.Stuck) > 0 {
				t.Fatalf("got %+v", h)
			}
			time.Sleep(time.Minute)
		}
		time.Sleep(5 * time.Minute)
		if h := a.Health(); len(h.Running) > 0 || len(h.Stuck) > 0 {
			t.Errorf("both are over: got %+v", h)
		}
	})
}

// While one of two runs goes on though its context has ended, Health tells of
// it, whatever the other does.
func TestRunNowEverywhereBesideAnOverrun(t *testing.T) {
	for name, test := range map[string]struct {
		byHand bool // the run that goes on; else the tick's
		says   string
	}{
		"of the tick":     {false, "no tick of this job runs on this replica until it returns"},
		"of that by hand": {true, "its run by hand ann goes on"},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				job := here("* * * * *", func(_ context.Context, r *soloist.Run) error {
					if r.Request == "ann" && test.byHand || r.Request == "" && !test.byHand && r.Tick.Minute() == 1 {
						time.Sleep(20 * time.Minute)
					} else {
						time.Sleep(20 * time.Second)
					}
					return nil
				})
				job.Timeout = time.Minute
				a := c.start("a", job)
				time.Sleep(50 * time.Second) // a tick comes under the run by hand
				done := make(chan struct{})
				go func() { defer close(done); a.RunNow(c.t.Context(), "here", "ann") }()
				time.Sleep(5 * time.Minute)
				if !test.byHand {
					a.RunNow(c.t.Context(), "here", "bob")
				}
				if err := a.Health().Broken["here"]; !errors.Is(err, soloist.ErrTimeout) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %v, want %q", err, test.says)
				}
				time.Sleep(20 * time.Minute)
				<-done
				if h := a.Health(); len(h.Broken) > 0 || len(h.Overrun) > 0 {
					t.Errorf("both have returned: got %+v", h)
				}
			})
		})
	}
}
