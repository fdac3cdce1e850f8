package soloist_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// occupy holds the lease of a job, as a tool does that knows nothing of records,
// until free is called.
func (c *cluster) occupy(job string) (free func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	lease := c.store.Lease("soloist/"+job, "0a1b2c3d-0000-4000-8000-000000000000")
	entry, err := c.store.Read(ctx, "soloist/"+job)
	if err == nil {
		_, err = lease.Acquire(ctx, time.Minute, entry.ETag)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			_, _ = lease.Renew(ctx)
			select {
			case <-time.After(20 * time.Second):
			case <-ctx.Done():
			}
		}
	})
	return func() {
		cancel()
		all.Wait()
		_ = lease.Release(context.Background())
	}
}

// A tool holds the lease of an idle job: replicas say so, look rarely, and go on
// once it lets go.
func TestALeaseOfAClientThatClaimsNothing(t *testing.T) {
	for _, occupied := range []soloist.Work{work("@every 1m", time.Second), beating(time.Second, 100*time.Millisecond, true)} {
		inCluster(t, func(c *cluster) {
			name := "work"
			if _, singleton := occupied.(soloist.Singleton); singleton {
				name = "lead"
			}
			a := c.start("a", occupied)
			time.Sleep(time.Minute + 10*time.Second)
			a.stop()
			free := c.occupy(name)
			defer free()
			b := c.start("b", occupied)
			time.Sleep(3 * time.Minute)
			says := func(err error) bool {
				return err != nil && strings.Contains(err.Error(), "claims nothing: `unlock "+name+"` frees it")
			}
			if why := b.Health().Broken[name]; !says(why) {
				t.Errorf("health says %v", why)
			}
			if all, err := b.Status(c.t.Context()); err != nil || !says(all[0].Occupied) || all[0].Err != nil {
				t.Errorf("status is %+v, %v", all, err)
			}
			b.tap.counts()
			time.Sleep(time.Hour)
			if n := b.tap.counts(); n["read"] > 125 || n["acquire"] > 0 {
				t.Errorf("calls in an hour: %v", n)
			}
			if n := len(b.log.lines("level=WARN", "claims nothing")); n != 1 || len(b.log.lines("level=ERROR")) > 0 {
				t.Errorf("it warns %d times: %q", n, b.log.lines("level=ERROR"))
			}
			before := len(c.all())
			free()
			time.Sleep(31 * time.Second)
			if len(c.all()) == before || len(b.Health().Broken) > 0 {
				t.Errorf("when it is free: %d runs, health is %v", len(c.all())-before, b.Health().Broken)
			}
		})
	}
}

// A wake-up, a run by hand and a status of another process return, and say so.
func TestCallsBesideAClientThatClaimsNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 1m", time.Second))
		time.Sleep(time.Minute + 10*time.Second)
		a.stop()
		defer c.occupy("work")()
		time.Sleep(2 * time.Minute)
		ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Minute)
		defer cancel()
		for name, call := range map[string]func(*replica) error{
			"RunDue": func(r *replica) error { _, err := r.RunDue(ctx, soloist.Wake{}); return err },
			"RunNow": func(r *replica) error { _, err := r.RunNow(ctx, "work", "please"); return err },
			"Status": func(r *replica) error { all, _ := r.Status(ctx); return all[0].Occupied },
		} {
			begin := time.Now()
			err := call(c.replica(name, work("@every 1m", time.Second)))
			if err == nil || !strings.Contains(err.Error(), "`unlock work` frees it") || time.Since(begin) > 2*D+15*time.Second {
				t.Errorf("%s after %s: %v", name, time.Since(begin), err)
			}
		}
	})
}

// A replica that holds off for long is none of those.
func TestAHoldOffIsNoOccupation(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", 30*time.Minute)
		job.Lease, job.Interrupted = time.Minute, soloist.Rerun
		a := c.start("a", job)
		time.Sleep(time.Hour + time.Second)
		a.kill()
		if err := c.store.Break(c.t.Context(), "soloist/work", 0); err != nil {
			t.Fatal(err)
		}
		b, d := c.start("b", job), c.start("d", job)
		for range 100 {
			time.Sleep(time.Second)
			if len(b.Health().Broken)+len(d.Health().Broken) > 0 {
				t.Fatalf("health: %v, %v", b.Health().Broken, d.Health().Broken)
			}
		}
		if n := len(c.all()); n != 2 {
			t.Errorf("%d runs", n)
		}
	})
}
