package sim

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// addTo gives a scheduler the jobs and singletons of some definitions, each whole once.
func (c *Cluster) addTo(s *soloist.Scheduler, m *world.Machine, defs []trace.Definition) {
	wholes := map[string]bool{}
	for i := range defs {
		d := &defs[i]
		if d.Shards > 0 && wholes[d.Whole] {
			continue
		}
		if wholes[d.Whole] = true; d.Schedule == "" {
			s.Singletons = append(s.Singletons, c.singleton(m, d))
		} else {
			s.Jobs = append(s.Jobs, c.job(m, d))
		}
	}
}

func (c *Cluster) job(m *world.Machine, d *trace.Definition) soloist.Job {
	j := d.Job
	j.Name, j.After.Jobs, j.Lease, j.Do = cmp.Or(d.Whole, d.Name), d.Before(), cmp.Or(d.Beat, d.Lease), c.do(m, d)
	j.HealthCheck.Check, j.Days.Except = c.healthy(m, d), closed(d)
	if d.Follows != "" {
		j.Schedule = ""
	}
	limits(&j, d)
	return j
}

func (c *Cluster) singleton(m *world.Machine, d *trace.Definition) soloist.Singleton {
	j := c.job(m, d)
	return soloist.Singleton{Name: j.Name, Shards: j.Shards, Lease: j.Lease, HeartbeatTimeout: j.HeartbeatTimeout, Backoff: j.Retry.Backoff,
		HealthCheck: j.HealthCheck, MaxCheckpoint: j.MaxCheckpoint, Do: j.Do}
}

// closed returns the calendar of an edition.
func closed(d *trace.Definition) []soloist.Calendar {
	if d.Closed == "" || d.Follows != "" {
		return nil
	}
	return []soloist.Calendar{dates("closed", d.Closed)}
}

// limits gives a job what limits its ticks.
func limits(j *soloist.Job, d *trace.Definition) {
	if d.Follows != "" { // it has the ticks of another job
		return
	}
	l := &d.Limits
	j.Days.From, j.Days.Until, j.Days.Shift = l.From, l.Until, l.Shift
	if l.Except != "" {
		j.Days.Except = append(j.Days.Except, dates("except", l.Except))
	}
	if l.Only != "" {
		j.Days.Only = append(j.Days.Only, dates("only", l.Only))
	}
}

// dates is a calendar of days. It is the same one each time: a program asks a new calendar for each day of a century.
func dates(name, days string) soloist.Calendar {
	c, ok := calendars.Load(name + " " + days)
	if !ok {
		c, _ = calendars.LoadOrStore(name+" "+days, calendar.Dates(name, strings.Fields(days)...))
	}
	return c.(soloist.Calendar)
}

var calendars sync.Map

// healthy is the HealthCheck of a job, nil for none.
func (c *Cluster) healthy(m *world.Machine, d *trace.Definition) func(context.Context) error {
	if d.Pulse == trace.NoPulse {
		return nil
	}
	return func(ctx context.Context) error {
		start := time.Now()
		r := draw.New(c.Seed, 0, "healthy", m.Name, d.Name, trace.TimeOfDay(start))
		m.Sleep(ctx, r.Between(time.Millisecond, 50*time.Millisecond), r)
		if time.Now().Equal(start) { // the run ended at that instant: it may or may not have been asked
			return ctx.Err()
		}
		return m.Answer(ctx, d.Pulse, r, c.calm())
	}
}
