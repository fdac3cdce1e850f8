package sim

import (
	"time"

	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// liveBefore has one replica run the most frequent job, in every tenth seed, and
// then no replica for so many days that more ticks come due than a record counts
// in one range.
func (c *Cluster) liveBefore() {
	often := pickJob(c.Program, "often")
	if c.NoFaultPlan || c.Seed%10 != 3 || len(often) == 0 {
		return
	}
	r := draw.New(c.Seed, 0, "before")
	s := &slot{Cluster: c, index: c.Replicas}
	one := s.startWith("b1.1", often, "")
	time.Sleep(r.Between(20*time.Second, time.Minute))
	one.stop()
	days := draw.Pick(r, 12, 11, 14)
	gap := time.Duration(days)*24*time.Hour + r.Between(0, time.Hour)
	c.log.Add(trace.Event{What: trace.Down, End: time.Now().Add(gap)})
	time.Sleep(gap)
}

// pickJob returns the definition with a name alone.
func pickJob(all []trace.Definition, name string) []trace.Definition {
	for i := range all {
		if all[i].Name == name {
			return all[i : i+1 : i+1]
		}
	}
	return nil
}
