package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

var errNetwork = errors.New("connection reset")

// lose loses the answers to the n-th call of op, which is applied.
func lose(op string, n int) func(string, func() error) error {
	seen := 0
	return func(got string, apply func() error) error {
		err := apply()
		if got == op {
			if seen++; seen == n {
				return errNetwork
			}
		}
		return err
	}
}

// drop loses the n-th call of op before it is applied.
func drop(op string, n int) func(string, func() error) error {
	seen := 0
	return func(got string, apply func() error) error {
		if got == op {
			if seen++; seen == n {
				return errNetwork
			}
		}
		return apply()
	}
}

// Writes alternate: claim, outcome, claim, ...
func TestALostCallOrAnswerCostsNothing(t *testing.T) {
	for _, op := range []string{"create", "read", "acquire", "write", "renew", "release"} {
		for n := 1; n <= 4; n++ {
			for kind, fault := range map[string]func(string, func() error) error{"answer": lose(op, n), "call": drop(op, n)} {
				t.Run(fmt.Sprintf("%s %s %d", op, kind, n), func(t *testing.T) {
					inCluster(t, func(c *cluster) {
						a := c.replica("a", work("@every 10s", 6*time.Second))
						a.tap.meet(fault)
						c.launch(a)
						time.Sleep(59 * time.Second)
						if got := once(t, c.all()); got != 5 {
							t.Errorf("%d ticks ran, want 5: %q", got, c.outcomes("work"))
						}
						for _, f := range c.outcomes("work") {
							if !strings.HasPrefix(f, "succeeded") {
								t.Errorf("got %s", f)
							}
						}
					})
				})
			}
		}
	}
}

// What of the calls after a claim of unclear outcome gets through decides
// whether the tick is run; it is never run twice.
func TestAnUnclearClaimIsReadBack(t *testing.T) {
	for name, tt := range map[string]struct {
		fault func(s *tap) func(string, func() error) error
		runs  int
	}{
		"applied, read back": {func(*tap) func(string, func() error) error { return lose("write", 1) }, 1},
		"applied, unreadable": {func(s *tap) func(string, func() error) error {
			return func(op string, apply func() error) error {
				err := apply()
				if op == "write" {
					s.cut.Store(true)
					return errNetwork
				}
				return err
			}
		}, 0},
		"dropped twice": {func(*tap) func(string, func() error) error {
			return func(op string, apply func() error) error {
				if op == "write" {
					return errNetwork
				}
				return apply()
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				a := c.replica("a", work("0 * * * *", time.Second))
				time.Sleep(59 * time.Minute)
				a.tap.meet(tt.fault(a.tap))
				c.launch(a)
				time.Sleep(3 * time.Minute)
				if got := len(c.all()); got != tt.runs {
					t.Errorf("%d runs, want %d", got, tt.runs)
				}
			})
		})
	}
}

// A renewal that hangs must not move the end of the trust: it lies before the
// end of the lease, counted from when the last good one was sent.
func TestTheTrustEndsBeforeTheLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 * * * *", 20*time.Minute))
		time.Sleep(time.Hour + 31*time.Second) // renewed at +30 s
		a.kill()
		time.Sleep(time.Minute)
		runs := c.all()
		if len(runs) != 1 || !errors.Is(runs[0].cause, store.ErrLost) {
			t.Fatalf("got %+v", runs)
		}
		lapse := runs[0].start.Add(30*time.Second + D)
		if left := lapse.Sub(runs[0].end); left < D/6 || left > D/4 {
			t.Errorf("ended %s before the lease could lapse, want a little over %s", left, D/6)
		}
	})
}

func TestTransientFaultsOfRenewalsEndNoRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 * * * *", 2*time.Minute))
		time.Sleep(time.Hour + 31*time.Second)
		a.tap.meet(func(op string, apply func() error) error {
			if op == "renew" {
				return errNetwork
			}
			return apply()
		})
		time.Sleep(8 * time.Second)
		a.tap.meet(nil)
		time.Sleep(2 * time.Minute)
		if got, want := c.outcomes("work"), []string{"succeeded 01:00:00"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestABrokenLeaseEndsTheRun(t *testing.T) {
	for name, period := range map[string]time.Duration{"at once": 0, "naturally": -1} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				c.start("a", work("@every 1m", 50*time.Second))
				c.start("b", work("@every 1m", 50*time.Second))
				time.Sleep(67 * time.Second)
				if err := c.store.Break(t.Context(), "soloist/work", period); err != nil {
					t.Fatal(err)
				}
				broken := time.Now()
				time.Sleep(3 * time.Minute)
				runs := c.all()
				if !errors.Is(runs[0].cause, store.ErrLost) || runs[0].end.Sub(broken) > D/3+time.Second {
					t.Errorf("ended %s after the break with %v", runs[0].end.Sub(broken), runs[0].cause)
				}
				if len(runs) < 2 {
					t.Fatalf("got %+v", runs)
				}
				if wait := runs[1].start.Sub(broken); wait < D {
					t.Errorf("the next run began %s after the break, within the lease of the old one", wait)
				}
			})
		})
	}
}

// Nobody may run before the old runner must have given up, even if it does not
// notice: here it is cut off before the lease is broken.
func TestHoldOffAfterABreak(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 1m", 50*time.Minute))
		time.Sleep(61 * time.Second)
		c.start("b", work("@every 1m", time.Second))
		time.Sleep(time.Minute + 700*time.Millisecond) // just renewed
		a.kill()
		if err := c.store.Break(context.Background(), "soloist/work", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		runs := c.all()
		if len(runs) < 2 || runs[1].replica != "b" {
			t.Fatalf("nobody took over: %+v", runs)
		}
		if !runs[0].end.Before(runs[1].start) {
			t.Errorf("the old run ended at %s, the next began at %s", runs[0].end, runs[1].start)
		}
	})
}

func TestAnEntryMadeAnew(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("a", work("@every 10s", time.Second))
		c.start("b", work("@every 10s", time.Second))
		time.Sleep(55 * time.Second)
		if err := c.store.Delete(context.Background(), "soloist/work"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := once(t, c.all()); got < 8 {
			t.Errorf("%d ticks ran: %q", got, c.outcomes("work"))
		}
		disjoint(t, c.all())
	})
}

// The old runner may not know that its entry is gone: here it is cut off.
func TestHoldOffAfterADeletion(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 1s", 50*time.Minute))
		time.Sleep(1500 * time.Millisecond)
		c.start("b", work("@every 1s", time.Second))
		time.Sleep(time.Minute)
		a.kill()
		ctx := context.Background()
		if err := errors.Join(c.store.Break(ctx, "soloist/work", 0), c.store.Delete(ctx, "soloist/work")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		runs := c.all()
		if len(runs) < 10 || runs[1].replica != "b" {
			t.Fatalf("nobody took over: %d runs", len(runs))
		}
		disjoint(t, runs)
	})
}

// A process that is frozen between its claim and the run.
func TestAClaimThatTookTooLongIsNotRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@every 1h", time.Second))
		a.tap.meet(func(op string, apply func() error) error {
			switch op {
			case "write":
				err := apply()
				time.Sleep(D + time.Second)
				return err
			case "renew":
				return errNetwork
			}
			return apply()
		})
		c.launch(a)
		time.Sleep(time.Hour + 10*time.Second)
		c.start("b", work("@every 1h", time.Second))
		time.Sleep(2 * time.Minute)
		if got := c.all(); len(got) != 0 {
			t.Errorf("it ran: %+v", got)
		}
		if got, want := c.outcomes("work"), []string{"abandoned 01:00:00 its runner died"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Free and unfinished, the record would look as if somebody had broken the
// lease.
func TestAnUnconfirmedFinishKeepsTheLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 1h", 10*time.Second))
		time.Sleep(time.Hour + time.Second)
		a.tap.meet(func(op string, apply func() error) error {
			if op == "write" || op == "read" {
				return errNetwork
			}
			return apply()
		})
		begin := time.Now()
		a.stop()
		if took := time.Since(begin); took > D {
			t.Errorf("it stopped after %s", took)
		}
		if e, err := c.store.Read(context.Background(), "soloist/work"); err != nil || e.State == store.Available {
			t.Errorf("the lease is %s, %v", e.State, err)
		}
	})
}

func TestARunThatWasTakenOverCannotFinish(t *testing.T) {
	inCluster(t, func(c *cluster) {
		stubborn := soloist.Job{Name: "work", Schedule: "@every 1h", Lease: D, Do: func(context.Context, *soloist.Run) error {
			time.Sleep(90 * time.Second) // it does not look at its context
			return nil
		}}
		a := c.start("a", stubborn)
		time.Sleep(time.Hour + time.Second)
		c.start("b", work("@every 1h", time.Second))
		a.kill()
		time.Sleep(80 * time.Second)
		want := []string{"abandoned 01:00:00 its runner died"}
		if got := c.outcomes("work"); !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		a.tap.cut.Store(false)
		time.Sleep(time.Minute)
		if got := c.outcomes("work"); !slices.Equal(got, want) {
			t.Errorf("after the late end: got %q, want %q", got, want)
		}
		if got := a.log.lines("level=ERROR", "refused"); len(got) != 1 {
			t.Errorf("the refusal was told %d times", len(got))
		}
	})
}

// A replica writes no record that others refuse: with the largest token it stops,
// and says so.
func TestTheLargestTokenIsTheLast(t *testing.T) {
	inCluster(t, func(c *cluster) {
		const record = `{"schema":1,"app":"soloist","job":"work","created":"1999-01-01T00:00:00Z","watermark":"1999-01-01T00:00:00Z","token":4611686018427387902,"status":"idle"}`
		if _, err := c.store.Create(c.t.Context(), "soloist/work", []byte(record)); err != nil {
			c.t.Fatal(err)
		}
		a := c.start("a", work("@every 10s", time.Second))
		time.Sleep(2 * time.Minute)
		if got := c.all(); len(got) != 1 || got[0].Token != 4611686018427387903 {
			t.Errorf("%d runs: %+v", len(got), got)
		}
		b := c.start("b", work("@every 10s", time.Second))
		time.Sleep(2 * time.Minute)
		for _, r := range []*replica{a, b} {
			if err := r.Health().Broken["work"]; err == nil || !strings.Contains(err.Error(), "the largest there is") {
				t.Errorf("health of %s says %v", r.Replica, err)
			}
		}
		if r := c.record("work"); r.Token != 4611686018427387903 || r.Status != store.Succeeded {
			t.Errorf("got %s with token %d", r.Status, r.Token)
		}
	})
}

// What is less than a minute ahead is a clock that differs, and a tick that is
// due later is no fault.
func TestARecordThatIsALittleAhead(t *testing.T) {
	inCluster(t, func(c *cluster) {
		const record = `{"schema":1,"app":"soloist","job":"work","created":"2000-01-01T00:00:30Z","since":"2000-01-01T00:00:55Z","watermark":"2000-01-01T00:00:30Z","due":"2001-01-01T00:00:00Z","token":7,"status":"idle"}`
		if _, err := c.store.Create(c.t.Context(), "soloist/work", []byte(record)); err != nil {
			c.t.Fatal(err)
		}
		a := c.start("a", work("@every 10s", 0))
		time.Sleep(10 * time.Second)
		if err := a.Health().Broken["work"]; err != nil && strings.Contains(err.Error(), "in the future") {
			t.Errorf("health says %v", err)
		}
	})
}

func TestARecordOfSomebodyElseIsLeftAlone(t *testing.T) {
	const past = `"created":"1999-01-01T00:00:00Z","watermark":"1999-01-01T00:00:00Z"`
	const created = `"created":"2026-01-01T00:00:00Z","watermark":"2026-01-01T00:00:00Z","token":7,"status":"idle"`
	for name, tt := range map[string]struct{ record, want string }{
		"garbage":   {`%PDF-1.7`, "not JSON"},
		"array":     {`[1,2]`, "not JSON"},
		"types":     {`{"schema":"one"}`, "cannot be read"},
		"newer":     {`{"schema":9,"app":"soloist","job":"work",` + created + `}`, "schema 9"},
		"foreign":   {`{"schema":1,"app":"other","job":"work",` + created + `}`, `"other/work"`},
		"status":    {`{"schema":1,"app":"soloist","job":"work","created":"1999-01-01T00:00:00Z","watermark":"1999-01-01T00:00:00Z","token":7,"status":"dancing"}`, "dancing"},
		"no token":  {`{"schema":1,"app":"soloist","job":"work","created":"1999-01-01T00:00:00Z","watermark":"1999-01-01T00:00:00Z","token":0,"status":"idle"}`, "token 0"},
		"future":    {`{"schema":1,"app":"soloist","job":"work",` + created + `}`, "watermark 2026-01-01T00:00:00Z is in the future"},
		"tick":      {`{"schema":1,"app":"soloist","job":"work",` + past + `,"token":7,"status":"running","tick":"2000-01-01T01:00:00Z","attempt":1,"lease":15}`, "tick 2000-01-01T01:00:00Z is in the future"},
		"claim":     {`{"schema":1,"app":"soloist","job":"work",` + past + `,"token":7,"status":"running","claimed":"2000-01-01T01:00:00Z","attempt":1,"lease":15}`, "claim 2000-01-01T01:00:00Z is in the future"},
		"since":     {`{"schema":1,"app":"soloist","job":"work",` + past + `,"token":7,"status":"idle","since":"9999-12-31T23:59:59Z"}`, "(since) 9999-12-31T23:59:59Z is in the future"},
		"mark":      {`{"schema":1,"app":"soloist","job":"work",` + past + `,"token":7,"status":"idle","mark":{"spec":"x","since":"9999-12-31T23:59:59Z"}}`, "(mark) 9999-12-31T23:59:59Z is in the future"},
		"history":   {`{"schema":1,"app":"soloist","job":"work",` + past + `,"token":7,"status":"idle","history":[{"tick":"2000-01-01T01:00:00Z","status":"succeeded"}]}`, "history 2000-01-01T01:00:00Z is in the future"},
		"created":   {`{"schema":1,"app":"soloist","job":"work","created":"2000-01-01T01:00:00Z","watermark":"1999-01-01T00:00:00Z","token":7,"status":"idle"}`, "creation 2000-01-01T01:00:00Z is in the future"},
		"token":     {`{"schema":1,"app":"soloist","job":"work",` + past + `,"token":4611686018427387903,"status":"idle"}`, "the token 4611686018427387903, the largest there is"},
		"overflow":  {`{"schema":1,"app":"soloist","job":"work",` + past + `,"token":4611686018427387904,"status":"idle"}`, "a token is from 1 to 4611686018427387903"},
		"attempt":   {`{"schema":1,"app":"soloist","job":"work",` + past + `,"token":7,"status":"idle","attempt":-1}`, "attempt -1"},
		"watermark": {`{"schema":1,"app":"soloist","job":"work","token":7,"status":"idle"}`, "no watermark"},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				if _, err := c.store.Create(t.Context(), "soloist/work", []byte(tt.record)); err != nil {
					t.Fatal(err)
				}
				fine := work("@every 10s", time.Second)
				fine.Name = "fine"
				a := c.start("a", work("@every 10s", time.Second), fine)
				time.Sleep(2 * time.Minute)
				if got := string(c.raw("work")); got != tt.record {
					t.Errorf("the record became %s", got)
				}
				if slices.ContainsFunc(c.all(), func(r ran) bool { return r.Job == "work" }) {
					t.Error("it ran")
				}
				if got := len(c.all()); got != 12 && got != 11 {
					t.Errorf("the other job ran %d times", got)
				}
				if err := a.Health().Broken["work"]; err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("health says %v, want %q", err, tt.want)
				}
				status, _ := a.Status(context.Background())
				if status[0].Err == nil || !strings.Contains(status[0].Err.Error(), tt.want) {
					t.Errorf("status says %v", status[0].Err)
				}
				if got := a.log.lines("level=ERROR", "job=work"); len(got) != 1 {
					t.Errorf("told %d times: %q", len(got), got)
				}
			})
		})
	}
}
