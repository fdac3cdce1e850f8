package sim

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// fewest is more jobs than a program reads one by one. What a seed has less than that
// is made up by jobs that no replica has.
const fewest = 15

// look asks for the status of all jobs, which is read by one listing, and notes what it
// says of each.
func (c *Cluster) look(d draw.PlannedFault) {
	s := c.onlooker(d.Slot, trace.TimeOfDay(d.At))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	asked := time.Now()
	all, err := s.Status(ctx)
	if err != nil {
		panic(err)
	}
	for i := range all {
		st := &all[i]
		if st.Err != nil || st.EveryReplica || i >= len(all)-fewest && st.Lease == "" {
			continue
		}
		e := trace.Event{What: trace.Listed, Replica: trace.Operator, Job: st.Name, Sent: asked, Time: time.Now(), Heard: time.Now()}
		if st.Lease != "" {
			e.Record = &st.Record
		}
		c.log.Add(e)
	}
}

// onlooker is a program with all jobs, on a machine of its own. Its network has the faults of
// a replica's.
func (c *Cluster) onlooker(slot int, id string) *soloist.Scheduler {
	c.version.Lock()
	defs := c.version.now
	c.version.Unlock()
	m := world.NewMachine(trace.Operator, slot, world.NewClock(0, 0), c.log, &world.Traps{})
	s := &soloist.Scheduler{App: "sim", Store: c.store(m), Replica: "onlooker " + id, Groups: draw.GroupsOf(defs), Logger: slog.New(slog.DiscardHandler), Now: m.Now, Elapsed: m.Elapsed}
	c.addTo(s, m, defs)
	for i := range fewest {
		s.Jobs = append(s.Jobs, soloist.Job{Name: fmt.Sprintf("spare-%d", i), Schedule: "@hourly", Do: func(context.Context, *soloist.Run) error { return nil }})
	}
	return s
}
