package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// unlock waits until the job runs, and unlocks it at once or when its lease ends. The
// entry is not corrupted meanwhile.
func (c *Cluster) unlock(d draw.PlannedFault) {
	if _, on := c.corrupting.LoadOrStore(d.Job, true); on {
		return
	}
	defer c.corrupting.Delete(d.Job)
	r := draw.New(c.Seed, 0, draw.Unlocks, d.Job, trace.TimeOfDay(d.At))
	if !c.untilItRuns(d.Job, r) {
		return
	}
	s := c.desk(d.Job, r)
	if s == nil || len(s.Jobs) == 1 && s.Jobs[0].EveryReplica {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	now := r.Chance(0.8)
	_ = s.Unlock(ctx, d.Job, now) // the next holder may be first to write
}

// untilItRuns waits until a record says that the job runs, and a while longer. It
// returns false if that takes too long.
func (c *Cluster) untilItRuns(job string, r *draw.Roll) bool {
	for range 40 {
		var rec record.Record
		text, _ := c.entry(job)
		if json.Unmarshal([]byte(text), &rec) == nil && rec.Run.Status == event.Running {
			return c.idle(r.Between(0, 3*time.Second))
		}
		if !c.idle(r.Between(time.Second, 4*time.Second)) {
			return false
		}
	}
	return false
}

// desk is an operator's program, which runs nothing. It returns nil if there is
// no such job.
func (c *Cluster) desk(job string, r *draw.Roll) *soloist.Scheduler {
	defs, _ := c.program()
	n := slices.IndexFunc(defs, func(d trace.Definition) bool { return d.Name == job })
	if n < 0 {
		return nil
	}
	m := c.machine(trace.Unlocker, -1)
	backend := c.overHands(r, defs[n].Shards > 0)
	some := draw.Lineage(defs, defs[n])
	s := &soloist.Scheduler{App: "sim", Store: backend, Replica: trace.Unlocker, Groups: draw.GroupsOf(some), Logger: slog.New(slog.DiscardHandler), Now: m.Now, Elapsed: m.Elapsed}
	c.addTo(s, m, some)
	return s
}

// overHands is what an operator has of the store.
func (c *Cluster) overHands(r *draw.Roll, shards bool) world.Client {
	return world.Client{Send: (&hands{Cluster: c, roll: r, shards: shards}).send}
}

// hands are an operator's way to the service, on which nothing goes wrong.
type hands struct {
	*Cluster
	roll       *draw.Roll
	shards     bool // it is for all shards of a job
	classifier world.Classifier
}

func (h *hands) send(ctx context.Context, r *blobtest.Request) (world.Reply, error) {
	one := h.log.Add(h.byOperator(&h.classifier, r))
	roll := h.roll
	if h.shards { // several of them are read at one instant
		roll = draw.New(uint64(*h.roll), 0, one.Job, one.Op, trace.TimeOfDay(one.Sent))
	}
	if err := world.Pause(ctx, roll.Latency()); err != nil {
		return world.Reply{}, err
	}
	a := h.net.Apply(one, r)
	if err := world.Pause(ctx, roll.Latency()); err != nil {
		return world.Reply{}, err
	}
	h.log.Edit(func() { one.Heard = time.Now() })
	return world.Reply{Answer: a}, nil
}

func (c *Cluster) sweep(d draw.PlannedFault) {
	r := draw.New(c.Seed, 0, draw.Sweeps, trace.TimeOfDay(d.At))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, _ = soloist.Sweep(ctx, c.overHands(r, false), "sim", 10*time.Minute) // the container may be gone
}

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
	at, err := desk.Of(s)
	if err != nil {
		panic(err)
	}
	all := at.Statuses(ctx)
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
	defs, _ := c.program()
	m := c.machine(trace.Operator, slot)
	s := &soloist.Scheduler{App: "sim", Store: c.store(m), Replica: "onlooker " + id, Groups: draw.GroupsOf(defs), Logger: slog.New(slog.DiscardHandler), Now: m.Now, Elapsed: m.Elapsed}
	c.addTo(s, m, defs)
	for i := range fewest {
		s.Jobs = append(s.Jobs, soloist.Job{Name: fmt.Sprintf("spare-%d", i), Schedule: "@hourly", Do: func(context.Context, *soloist.Run) error { return nil }})
	}
	return s
}
