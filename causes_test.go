package soloist_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

type causeTest struct {
	job     func(*soloist.Job)
	grace   time.Duration
	meet    func(c *cluster, r *replica) // a minute and a second after the start, a second into the run
	cause   error                        // nil: the context did not end before the run returned
	text    string
	outcome string // empty: not told, since another replica tells it
	after   time.Duration
}

var causes = map[string]causeTest{
	"returns": {
		job:     func(j *soloist.Job) { j.Do = func(context.Context, *soloist.Run) error { return nil } },
		outcome: "succeeded 00:01:00",
	},
	"time-out": {
		job:   func(j *soloist.Job) { j.Timeout = 10 * time.Second },
		cause: soloist.ErrTimeout, text: "timed out after 10s", outcome: "failed 00:01:00 timed out after 10s", after: 9 * time.Second,
	},
	"silence": {
		job:   func(j *soloist.Job) { j.HeartbeatTimeout = 10 * time.Second },
		cause: soloist.ErrStalled, text: "stalled: no heartbeat for 10s", outcome: "stalled 00:01:00 no heartbeat for 10s", after: 9 * time.Second,
	},
	"unhealthy": {
		job: func(j *soloist.Job) {
			j.HealthInterval, j.FailureThreshold = 4*time.Second, 2
			j.HealthCheck = func(context.Context) error { return errors.New("no data") }
		},
		cause: soloist.ErrStalled, text: "stalled: unhealthy 2 times in a row: no data", outcome: "stalled 00:01:00 unhealthy 2 times in a row: no data", after: 7 * time.Second,
	},
	"stop without a grace": {
		meet:  func(_ *cluster, r *replica) { go r.stop() },
		cause: soloist.ErrStopped, text: "the replica is stopping", outcome: "abandoned 00:01:00 stopped",
	},
	"stop with a grace": {
		grace: 5 * time.Second,
		meet:  func(_ *cluster, r *replica) { go r.stop() },
		cause: soloist.ErrStopped, text: "the replica is stopping", outcome: "abandoned 00:01:00 stopped", after: 5 * time.Second,
	},
	"stepped down": {
		meet:  func(c *cluster, r *replica) { go r.StepDown(c.t.Context(), "work") },
		cause: soloist.ErrStopped, text: "the replica is stopping", outcome: "abandoned 00:01:00 stopped",
	},
	"cut off": {
		meet:  func(_ *cluster, r *replica) { r.kill() },
		cause: store.ErrLost, text: "the lease is lost: no renewal in time", after: D - D/100 - D/6 - time.Second,
	},
	"errors that pass": {
		meet: func(_ *cluster, r *replica) {
			r.tap.meet(func(string, func() error) error { return errNetwork })
		},
		cause: store.ErrLost, text: "the lease is lost: no renewal in time", after: D - D/100 - D/6 - time.Second,
	},
	"broken": {
		meet:  func(c *cluster, r *replica) { _ = c.store.Break(c.t.Context(), "soloist/work", 0) },
		cause: store.ErrLost, text: `the lease is lost: renew the lease of "soloist/work": the lease is lost`, after: D/3 - time.Second,
	},
	"deleted": {
		meet: func(c *cluster, r *replica) {
			_ = c.store.Break(c.t.Context(), "soloist/work", 0)
			_ = c.store.Delete(c.t.Context(), "soloist/work")
		},
		cause: store.ErrLost, text: `the lease is lost: renew the lease of "soloist/work": file does not exist`, after: D/3 - time.Second,
	},
}

// Every end of a context has its cause, which the record and the run's own
// methods tell as well.
func TestCauses(t *testing.T) {
	for name, test := range causes {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				var heart, check error
				var cause error
				var left time.Duration
				var ended time.Time
				job := soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D}
				job.Do = func(ctx context.Context, run *soloist.Run) error {
					if err := run.Heartbeat("at work"); err != nil {
						t.Errorf("Heartbeat: %v", err)
					}
					<-ctx.Done()
					ended, cause, left = time.Now(), context.Cause(ctx), run.Remaining()
					heart, check = run.Heartbeat("too late"), run.Check(context.Background())
					return ctx.Err()
				}
				if test.job != nil {
					test.job(&job)
				}
				r := c.replica("a", job)
				r.Grace = test.grace
				c.launch(r)
				time.Sleep(time.Minute + time.Second)
				met := time.Now()
				if test.meet != nil {
					test.meet(c, r)
				}
				time.Sleep(time.Minute)
				c.stopAll()
				if !errors.Is(cause, test.cause) || test.cause == nil && cause != nil || cause != nil && cause.Error() != test.text {
					t.Errorf("the cause is %q, want %q", cause, test.text)
				}
				if test.cause != nil {
					if got := ended.Sub(met); got < test.after || got > test.after+time.Second {
						t.Errorf("ended after %s, want %s", got, test.after)
					}
					if heart != cause || check != cause || left != 0 {
						t.Errorf("Heartbeat says %v, Check %v, Remaining %s", heart, check, left)
					}
				}
				if test.outcome == "" {
					return
				}
				if got := c.outcomes("work"); len(got) != 1 || got[0] != test.outcome {
					t.Errorf("got %q, want %q", got, test.outcome)
				}
			})
		})
	}
}

// The page's table names each cause with the outcome that the tests show.
func TestThePageTellsEachCause(t *testing.T) {
	page, err := os.ReadFile("docs/runs.md")
	if err != nil {
		t.Fatal(err)
	}
	sentinels := map[string]error{"ErrLost": store.ErrLost, "ErrStalled": soloist.ErrStalled,
		"ErrTimeout": soloist.ErrTimeout, "ErrStopped": soloist.ErrStopped}
	rows := regexp.MustCompile("(?m)^\\| `(Err[A-Z][a-z]+)` \\|.*\\| ([a-z ]+) \\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) != len(sentinels) {
		t.Errorf("%d rows, want %d", len(rows), len(sentinels))
	}
	for _, row := range rows {
		shown := false
		for _, test := range causes {
			if test.cause == nil || !errors.Is(test.cause, sentinels[row[1]]) {
				continue
			}
			outcome, _, _ := strings.Cut(test.outcome, " ")
			if outcome == "" {
				outcome = "told by the replica that takes over"
			}
			if shown = true; outcome != row[2] {
				t.Errorf("%s: the page says %q, the test %q", row[1], row[2], outcome)
			}
		}
		if !shown {
			t.Errorf("no test shows %s", row[1])
		}
	}
}
