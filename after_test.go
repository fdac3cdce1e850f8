package soloist_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// following is a job that follows others, which runs for d.
func following(name, after string, d time.Duration) soloist.Job {
	j := work("", d)
	j.Name, j.After = name, after
	return j
}

func (c *cluster) runsOf(job string) (runs []ran) {
	for _, r := range c.all() {
		if r.Job == job {
			runs = append(runs, r)
		}
	}
	return runs
}

var errImport = errors.New("no data")

func TestFollowerRunsWhenItsPredecessorHasEnded(t *testing.T) {
	inCluster(t, func(c *cluster) {
		for _, name := range []string{"a", "b", "c"} {
			c.start(name, named("import", work("*/10 * * * *", 3*time.Minute)), following("report", "import", time.Minute))
		}
		time.Sleep(35 * time.Minute)
		c.wantOutcomes("import", "succeeded 00:10:00", "succeeded 00:20:00", "succeeded 00:30:00")
		c.wantOutcomes("report", "succeeded 00:10:00", "succeeded 00:20:00", "succeeded 00:30:00")
		imports := c.runsOf("import")
		for i, r := range c.runsOf("report") {
			if late := r.start.Sub(imports[i].end); late < 0 || late > 200*time.Millisecond {
				t.Errorf("report of %s starts %s after import", r.Tick, late)
			}
		}
	})
}

func TestFollowerOfFailure(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports := named("import", doing("*/10 * * * *", func(_ context.Context, r *soloist.Run) error {
			if r.Tick.Minute() == 20 {
				return errImport
			}
			return nil
		}))
		always := following("always", "import", time.Second)
		always.AfterAny = true
		c.start("a", imports, following("report", "import", time.Second), always, following("mail", "report", time.Second))
		time.Sleep(35 * time.Minute)
		c.wantOutcomes("report", "succeeded 00:10:00", "skipped 00:20:00 import failed", "succeeded 00:30:00")
		c.wantOutcomes("mail", "succeeded 00:10:00", "skipped 00:20:00 report skipped", "succeeded 00:30:00")
		c.wantOutcomes("always", "succeeded 00:10:00", "succeeded 00:20:00", "succeeded 00:30:00")
	})
}
