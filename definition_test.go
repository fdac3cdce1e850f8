package soloist_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

func TestChangedScheduleStartsFromNow(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old := c.start("old", work("@every 10s", time.Second))
		time.Sleep(25 * time.Second)
		young := c.start("new", work("@every 7s", time.Second))
		time.Sleep(20 * time.Second) // ticks at 30, 37, 44: multiples of 7 s since 1970
		var byNew []string
		for _, r := range c.all() {
			if r.replica == "new" {
				byNew = append(byNew, r.Tick.Format("05"))
			} else if r.start.After(time.Now().Add(-20 * time.Second)) {
				t.Errorf("the old replica ran %s", r.Tick)
			}
		}
		want := []string{"30", "37", "44"}
		c.wrong(!slices.Equal(byNew, want), "the new one ran %q, want %q", byNew, want)
		wantError(t, old.Health().Broken["work"], "another schedule")
		young.wantLines(1, "level=INFO", "the schedule has changed")
		old.wantLines(1, "level=ERROR", "another schedule")
	})
}

// takenBack is how soon older replicas take a job back: a look until the mark,
// four minutes without an answer, and a look.
const takenBack = 4*time.Minute + 2*maxLook + time.Second

// maxLook is how often a replica looks at a job of a younger definition.
const maxLook = 30 * time.Second

// offTick is when a younger replica starts: at a tick it may see a run, and looks
// again a minute later.
const offTick = time.Minute + 5*time.Second

// answeredFor is how long a mark is not repeated after an answer.
const answeredFor = 2 * time.Minute

func TestTakeBackEndsWhenYoungerReturns(t *testing.T) {
	inCluster(t, func(c *cluster) {
		stays := c.start("stays", work("@every 10s", 0))
		time.Sleep(time.Minute)
		gone := c.start("gone", work("@every 7s", 0))
		time.Sleep(time.Minute)
		gone.stop()
		stopped := time.Now()
		time.Sleep(4 * time.Minute)
		runs := ranBy(c, "stays", stopped)
		c.wrong(len(runs) > 0, "taken back after %s", runs[0].start.Sub(stopped))
		time.Sleep(takenBack - 4*time.Minute + 2*D)
		if len(ranBy(c, "stays", stopped)) == 0 {
			t.Fatalf("not taken back: %v", stays.Health().Broken)
		}
		stays.wantLines(1, "level=WARN", "takes the job back")
		c.start("back", work("@every 7s", 0))
		time.Sleep(time.Minute)
		for _, r := range c.all()[len(c.all())-5:] {
			c.wrong(r.replica != "back", "%s runs tick %s", r.replica, r.Tick)
		}
		once(t, c.all())
	})
}

// A replica of the youngest definition that is up keeps the job, though its schedule has no tick for months: it answers.
func TestIdleYoungerReplicaAnswers(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old := c.start("oldest", work("@every 10s", 0))
		time.Sleep(5 * time.Minute)
		c.start("middle", work("0 * * * *", 0))
		time.Sleep(5*time.Minute + 5*time.Second)
		young := c.start("youngest", work("0 0 1 7 *", 0))
		started := time.Now()
		time.Sleep(24 * time.Hour)
		runs := append(ranBy(c, "oldest", started), ranBy(c, "middle", started)...)
		c.wrong(len(runs) > 0, "%d runs of older definitions, the first at %s by %s", len(runs), runs[0].start, runs[0].replica)
		old.wantLines(0, "takes the job back")
		answers := len(young.log.lines("answered a replica with an older definition"))
		least, most := 24*12, 24*31
		c.wrong(answers < least || answers > most, "%d answers in a day, want %d to %d", answers, least, most)
	})
}

// A younger definition comes into force soon. Where each run takes most of its period, the entry is free for a moment only; where
// a lease is kept from tick to tick, it is given up now and then.
func TestYoungerDefinitionIsInForceSoon(t *testing.T) {
	for _, tt := range []struct {
		old, young string
		takes      time.Duration
	}{
		{"@every 1m", "0 0 1 7 *", 50 * time.Second},
		{"@every 1s", "@every 2s", 10 * time.Millisecond},
		{"@every 1s", "@every 2s", 300 * time.Millisecond},
		{"@every 1s", "@every 2s", 700 * time.Millisecond},
	} {
		inBothModes(t, func(t *testing.T, c *cluster, claims bool) {
			c.startAll(ahead(claims, work(tt.old, tt.takes)), "a", "b")
			until(time.Minute + 1300*time.Millisecond)
			begin, spec := time.Now(), c.record("work").Definition.Spec
			c.start("young", ahead(claims, work(tt.young, tt.takes)))
			for c.record("work").Definition.Spec == spec && time.Since(begin) < 20*time.Minute {
				time.Sleep(100 * time.Millisecond)
			}
			took := time.Since(begin)
			c.wrong(took > 2*time.Minute, "runs of %s: it took %s", tt.takes, took)
		})
	}
}

// The younger replica cannot answer in an outage that hits both, whenever it
// starts, so the time in it does not count.
func TestOutageIsNoTakeBack(t *testing.T) {
	for phase := range 60 {
		inCluster(t, func(c *cluster) {
			old := c.start("old", work("@every 10s", 0))
			time.Sleep(offTick)
			young := c.start("young", work("0 0 1 7 *", 0))
			time.Sleep(10*time.Minute + time.Duration(phase)*2777*time.Millisecond)
			old.kill()
			young.kill()
			time.Sleep(5*time.Minute + time.Duration(phase)*777*time.Millisecond)
			old.tap.cut.Store(false)
			time.Sleep(maxLook)
			young.tap.cut.Store(false)
			time.Sleep(10 * time.Minute)
			old.wantLines(0, "takes the job back")
		})
	}
}

// A replica that was not well decides by what it reads now.
func TestOldRecordIsNoTakeBack(t *testing.T) {
	for phase := range 10 {
		inCluster(t, func(c *cluster) {
			hang := named("hang", deaf(10*time.Minute))
			hang.Timeout = time.Second
			old := c.start("old", work("@every 10s", 0), hang)
			time.Sleep(50*time.Second + time.Duration(phase)*time.Second)
			c.start("young", work("@every 7s", 0))
			time.Sleep(20 * time.Minute)
			old.wantLines(0, "takes the job back")
		})
	}
}

// Between two runs of a backlog the entry is free, and its tick long overdue.
func TestBacklogIsNoTakeBack(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job, young := work("@every 1m", 500*time.Millisecond), work("@every 30s", 2*time.Minute)
		job.Missed, young.Missed = soloist.RunAll, soloist.RunAll
		c.start("old", job).stop()
		time.Sleep(10 * time.Minute)
		old := c.start("old2", job)
		time.Sleep(offTick)
		c.start("young", young).tap.meet(func(op string, apply func() error) error {
			time.Sleep(20 * time.Millisecond)
			defer time.Sleep(20 * time.Millisecond)
			return apply()
		})
		time.Sleep(24 * time.Hour)
		old.wantLines(0, "takes the job back")
	})
}

// Three definitions are up and the youngest goes: of the two others the younger one
// takes the job back, however seldom its ticks are.
func TestYoungerOfTwoOlderTakesBack(t *testing.T) {
	inCluster(t, func(c *cluster) {
		oldest := c.start("oldest", work("@every 1m", 0))
		time.Sleep(5 * time.Minute)
		middle := c.start("middle", work("0 * * * *", 0))
		time.Sleep(5 * time.Minute)
		youngest := c.start("youngest", work("@every 2m", 0))
		time.Sleep(5 * time.Minute)
		youngest.kill()
		gone := time.Now()
		time.Sleep(3 * time.Hour)
		m, o := ranBy(c, "middle", gone), ranBy(c, "oldest", gone)
		c.wrong(len(m) != 3 || len(o) > 0, "the younger one runs %d ticks of 3, the oldest one %d", len(m), len(o))
		middle.wantWell()
		middle.kill()
		gone = time.Now()
		time.Sleep(takenBack + answeredFor)
		c.wrong(len(ranBy(c, "oldest", gone)) == 0, "the oldest one never takes the job back: %v", oldest.Health().Broken)
	})
}

// The storage is in reach for a replica that may lease an entry and not write it: a mark that is refused is that job's trouble.
// For a replica that may not even lease the entry it is not.
func TestRefusedMarkIsNoOutage(t *testing.T) {
	for name, tt := range map[string]struct {
		refused fault
		outage  bool
	}{
		"the write is refused": {failWrites(fs.ErrPermission), false},
		"the lease is refused": {fail(fs.ErrPermission, "acquire"), true},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			old := c.start("old", work("@every 10s", 0))
			time.Sleep(offTick)
			young := c.start("young", work("0 0 1 7 *", 0))
			time.Sleep(20 * time.Second)
			young.stop()
			old.tap.meet(tt.refused)
			old.tap.counts()
			time.Sleep(20 * time.Minute)
			h := old.Health()
			if errors.Is(h.Storage, fs.ErrPermission) != tt.outage || errors.Is(h.Broken["work"], fs.ErrPermission) == tt.outage {
				t.Errorf("health is %+v", h)
			}
			n := old.tap.counts()["acquire"]
			c.wrong(n < 3, "it has asked for the lease %d times", n)
			old.tap.meet(nil)
			healed := time.Now()
			time.Sleep(time.Minute + takenBack + 2*D)
			c.wrong(len(ranBy(c, "old", healed)) == 0, "not taken back once it may write: %v", old.Health().Broken)
			old.wantWell()
		})
	}
}

// The definition of the replica that started last is in force, also where its first
// answer takes longer than its lead.
func TestYoungestIsInForceDespiteSlowStart(t *testing.T) {
	inCluster(t, func(c *cluster) {
		time.Sleep(10 * time.Second)
		c.start("old", leased(time.Minute, work("@every 1m", 0)))
		time.Sleep(5 * time.Second)
		var calls atomic.Int64
		r := c.launch(c.replica("young", leased(time.Minute, work("@every 2m", 0))).meets(func(_ string, apply func() error) error {
			err := apply()
			if calls.Add(1) == 1 {
				time.Sleep(8 * time.Second)
			}
			return err
		}))
		time.Sleep(10 * time.Minute)
		if err := r.Health().Broken["work"]; err != nil {
			t.Errorf("the younger replica says %v", err)
		}
	})
}

// A replica whose first calls fail has nothing but its wall clock, which is two hours ahead, and must not tell others by that
// when it started. If it is gone, they must not look for it in a circle.
func TestStartInOutageIgnoresWallClock(t *testing.T) {
	for name, gone := range map[string]bool{"it is up": false, "it is gone": true} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			old := c.launch(c.replica("old", work("@every 10s", 0)).skewed(2 * time.Hour).meets(fail(context.DeadlineExceeded)))
			time.Sleep(time.Minute)
			old.tap.meet(nil)
			time.Sleep(time.Minute)
			if since := c.record("work").Definition.Since; since.After(time.Now()) {
				t.Errorf("the record says that a replica started at %s, and it is %s", since, time.Now().UTC())
			}
			if gone {
				old.stop()
			}
			c.start("young", work("@every 7s", 0))
			time.Sleep(time.Minute)
			runs := c.all()
			c.wrong(runs[len(runs)-1].replica != "young", "the younger definition does not count: %+v", runs[len(runs)-1])
		})
	}
}
