//go:build unix

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	simjudge "github.com/soloist-go/soloist/internal/sim/judge"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A judge finds in a story what must not happen, in addition to what the judge of the simulation finds in its log.
type judge struct {
	Story
	faults []string
}

// maxDeaths is how many runners of a tick may die under Rerun.
const maxDeaths = 5

// violations returns a line for each violation. The argument specs is the result of [specs].
func violations(s Story, specs map[string]string) []string {
	j := &judge{Story: s}
	done := slices.ContainsFunc(s.Effects, func(e Effect) bool { return e.What == Done && !e.Stale })
	if !done || len(s.Requests) == 0 || len(s.Faults) == 0 {
		j.bad("nothing happened: %d effects, %d requests, %d faults, a run that was done: %t", len(s.Effects), len(s.Requests), len(s.Faults), done)
		return j.faults
	}
	for _, q := range s.Requests {
		if q.Record != nil && q.Job != leader && specs[q.Job+" "+q.Record.Definition.Spec] == "" {
			j.bad("%s: %s writes a spec that no version has", q.Job, q.Replica)
		}
	}
	for _, v := range simjudge.Judge(tell(s, specs)) {
		j.bad("%s", v)
	}
	j.grants()
	j.starts()
	j.takenBack()
	j.processes()
	j.reasons()
	return append(j.faults, s.Unwell...)
}

func (j *judge) bad(format string, args ...any) {
	j.faults = append(j.faults, fmt.Sprintf(format, args...))
}

// noted is how much later than it was given a lease may be noted.
const noted = 500 * time.Millisecond

// grants: no lease is given while another one of the entry is in force. A service that does so seldom does harm, since the
// ETag keeps out who has not seen that lease's first write. So it is judged by itself.
func (j *judge) grants() {
	type grant struct {
		*trace.Event
		end time.Time
	}
	last := map[string]*grant{} // by job
	for _, q := range j.Requests {
		g := last[q.Job]
		switch {
		case q.Op == "acquire":
			if g != nil && g.Lease != q.Lease && q.Time.Before(g.end.Add(-noted)) {
				j.bad("%s: %s is given a lease at %s, and that of %s is in force until %s",
					q.Job, q.Replica, clock(q.Time), g.Replica, clock(g.end))
			}
			last[q.Job] = &grant{q, q.Time.Add(q.Span)}
		case q.Op == "replace" || q.Op == "break":
			delete(last, q.Job)
		case g == nil || g.Lease != q.Lease:
		case q.Op == "renew":
			g.end = q.Time.Add(g.Span)
		case q.Op == "release":
			delete(last, q.Job)
		}
	}
}

// A tick is one of a job.
type tick struct {
	job string
	at  int64
}

// starts: a tick is started until five runners of it have died, which is said of none that stops its run itself; and the effect
// that a tick is for is accepted once, but under Rerun, where a runner may be cut off between that and the record of it.
func (j *judge) starts() {
	rerun := map[string]bool{}
	for _, d := range definitions("2") {
		rerun[d.Name] = d.Interrupted == soloist.Rerun
	}
	stopped := map[tick]bool{} // by job and token
	for _, q := range j.Requests {
		if r := q.Record; r != nil && r.Run.Status == event.Abandoned && r.Run.Replica == q.Replica {
			stopped[tick{q.Job, r.Token}] = true
		}
	}
	tokens, done := map[tick][]int64{}, map[tick]*Effect{}
	for i := range j.Effects {
		e := &j.Effects[i]
		key := tick{e.Job, e.Tick.UnixNano()}
		switch {
		case e.Tick.IsZero():
		case e.began() && !slices.Contains(tokens[key], e.Token):
			deaths := 0
			for _, token := range tokens[key] {
				if token < e.Token && !stopped[tick{e.Job, token}] {
					deaths++
				}
			}
			if tokens[key] = append(tokens[key], e.Token); deaths >= maxDeaths {
				j.bad("%s is start %d of its tick", e, deaths+1)
			}
		case e.What == Done && !e.Stale:
			if old := done[key]; old != nil && !rerun[e.Job] {
				j.bad("%s succeeded, as had %s", e, old)
			}
			done[key] = e
		}
	}
}

// takenBack: no claim is taken back whose run has begun.
func (j *judge) takenBack() {
	for _, q := range j.Requests {
		if q.Op == "take back" && slices.ContainsFunc(j.Effects, func(e Effect) bool {
			return e.What == Started && e.Job == q.Job && e.Token == q.Record.Token
		}) {
			j.bad("%s: the claim with token %d was taken back at %s, and its run had begun", q.Job, q.Record.Token, clock(q.Time))
		}
	}
}

// processes: none ends by itself, except under a run that ignores its context or
// was frozen when it had to obey; each stops when it is asked to.
func (j *judge) processes() {
	for _, e := range j.Exits {
		switch {
		case e.Asked == tooLong:
			j.bad("%s, started at %s, did not stop within %s", e.Replica, clock(e.Start), stops)
		case e.Asked == sigkill && e.Code == -1, e.Asked == sigterm && e.Code == 0:
		case e.Asked == sigterm && e.Code == -1 && !e.Listened: // it did not handle signals yet
		case e.Code == exitOverrun && j.excused(e):
		case e.Code == exitOverrun:
			j.bad("%s, started at %s, exited at %s as if a run ignored its context, and none did", e.Replica, clock(e.Start), clock(e.At))
		default:
			j.bad("%s, started at %s, ended at %s with code %d", e.Replica, clock(e.Start), clock(e.At), e.Code)
		}
	}
}

// exitOverrun is the code of a process in which a run goes on without its lease.
const exitOverrun = 3

func (j *judge) excused(x Exit) bool {
	if x.At.Sub(x.Thawed) < 5*time.Second {
		return true
	}
	return slices.ContainsFunc(j.Effects, func(e Effect) bool {
		return e.What == Blocks && e.Replica == x.Replica && e.Got.After(x.Start) && e.Got.Before(x.At)
	})
}

func clock(t time.Time) string { return trace.TimeOfDay(t) }
