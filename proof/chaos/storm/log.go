//go:build unix

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// of are the jobs, or the singletons, of a version. They do nothing.
func of[W soloist.Work](version string) (all []W) {
	for _, w := range (&program{}).works(version) {
		if one, ok := w.(W); ok {
			all = append(all, one)
		}
	}
	return all
}

// definitions are the jobs and the singleton of a version. Ticks are the multiples of the intervals.
func definitions(version string) (all []trace.Definition) {
	for _, j := range of[soloist.Job](version) {
		d := trace.Definition{Job: j, Every: time.Minute}
		if text, ok := strings.CutPrefix(j.Schedule, "@every "); ok {
			d.Every, _ = time.ParseDuration(text)
		}
		all = append(all, d)
	}
	return append(all, trace.Definition{Job: soloist.Job{Name: leader}})
}

// specs are the versions by the job and the hash of its schedule in records: the first version that has it.
func specs() (map[string]string, error) {
	out := map[string]string{}
	for _, version := range []string{"2", "1"} {
		all := of[soloist.Job](version)
		for i := range all {
			all[i].Do = func(context.Context, *soloist.Run) error { return nil }
		}
		s := &soloist.Scheduler{Store: &local.Memory{}, Jobs: all}
		if _, err := s.RunDue(context.Background(), soloist.Wake{}); err != nil {
			return nil, err
		}
		at, err := desk.Of(s)
		if err != nil {
			return nil, err
		}
		for _, st := range at.Statuses(context.Background()) {
			out[st.Name+" "+st.Record.Definition.Spec] = version
		}
	}
	return out, nil
}

// A teller makes of a story the log that the judge of the simulation reads. In it a replica has its version in its name: the
// version of the last record that was written under a lease is the version of the holder.
type teller struct {
	Story
	log      *trace.Log
	versions map[string]string           // by job and lease
	leases   map[string]map[int64]string // of claims, by job and replica, and token
}

// tell returns the log.
func tell(s Story, specs map[string]string) *trace.Log {
	t := &teller{s, &trace.Log{Around: true, Fleet: map[string][]trace.Definition{}}, map[string]string{}, map[string]map[int64]string{}}
	for _, q := range s.Requests {
		if q.Record == nil || q.Lease == "" {
			continue
		}
		t.versions[q.Job+" "+q.Lease] = specs[q.Job+" "+q.Record.Definition.Spec]
		if by := q.Job + " " + q.Replica; q.Record.Run.Status == event.Running {
			if t.leases[by] == nil {
				t.leases[by] = map[int64]string{}
			}
			if t.leases[by][q.Record.Token] == "" {
				t.leases[by][q.Record.Token] = q.Lease
			}
		}
	}
	for _, q := range s.Requests {
		one := *q
		one.Replica = t.name(q.Replica, q.Job, q.Lease)
		t.log.Add(one)
	}
	t.runs()
	return t.log
}

// name is the name of a replica, with its version.
func (t *teller) name(replica, job, lease string) string {
	version := t.versions[job+" "+lease]
	if version == "" {
		version = "1"
	}
	name := replica + "/" + version
	if t.log.Fleet[name] == nil {
		t.log.Fleet[name] = definitions(version)
	}
	return name
}

// A callOf names one call of a function.
type callOf struct {
	replica, job string
	token, tick  int64
	attempt, try int
}

// runs adds the calls of functions, and what they did. The context of a run is known to live from the first moment at which it
// believed in its lease to the last one.
func (t *teller) runs() {
	runs := map[callOf]*trace.Event{}
	for i := range t.Effects {
		e := &t.Effects[i]
		key := callOf{e.Replica, e.Job, e.Token, e.Tick.UnixNano(), e.Attempt, e.Try}
		base := trace.Event{Replica: t.name(e.Replica, e.Job, t.leases[e.Job+" "+e.Replica][e.Token]), Job: e.Job, Token: e.Token,
			Tick: e.Tick, Previous: e.Previous, Attempt: e.Attempt, Try: e.Try}
		if e.Tick.IsZero() {
			base.Tick = time.Time{}
		}
		if e.began() {
			call := base
			if call.What, call.Time = trace.Ran, e.Asked; e.What == Late {
				call.Time = e.Got
			}
			call.Cancelled = call.Time
			runs[key] = t.log.Add(call)
		}
		if r := runs[key]; r != nil {
			if e.Asked.After(r.Cancelled) {
				r.Cancelled = e.Asked
			}
			if e.What == Ended {
				if r.End, r.Result = e.Got, trace.Well; e.Failed {
					r.Result = trace.Failed
				}
			}
		}
		if e.What.note() {
			continue
		}
		if e.What == Loaded {
			loaded := base
			loaded.What, loaded.Time, loaded.Note = trace.Loaded, e.Asked, fmt.Sprint(e.Position)
			t.log.Add(loaded)
		}
		effect := base
		effect.What, effect.Time, effect.Sent, effect.Result = trace.Effect, e.Got, e.Asked, trace.Well
		if e.Asked.IsZero() {
			effect.Sent = e.Got
		}
		if e.Stale {
			effect.Result = trace.Refused
		}
		t.log.Add(effect)
	}
}
