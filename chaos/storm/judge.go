//go:build unix

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A judge finds in a story what must not happen.
type judge struct {
	Story
	every map[string]time.Duration // between two ticks, by the spec in a record
	rerun map[string]bool          // the jobs whose ticks may be started again

	faults  []string
	effects map[string][]*Effect // by job, in the order in which they came
	writes  map[string][]*Write  // likewise
}

// maxDeaths is how many runners of a tick may die under Rerun.
const maxDeaths = 5

// violations are in the order of the rules, a line each; none is well.
func violations(s Story, every map[string]time.Duration, rerun map[string]bool) []string {
	j := &judge{Story: s, every: every, rerun: rerun, effects: map[string][]*Effect{}, writes: map[string][]*Write{}}
	for i := range s.Effects {
		e := &s.Effects[i]
		j.effects[e.Job] = append(j.effects[e.Job], e)
	}
	for i := range s.Writes {
		w := &s.Writes[i]
		j.writes[w.Record.Job] = append(j.writes[w.Record.Job], w)
	}
	done := slices.ContainsFunc(s.Effects, func(e Effect) bool { return e.What == Done && !e.Stale })
	if !done || len(s.Writes) == 0 || len(s.Faults) == 0 {
		j.bad("nothing happened: %d effects, %d writes, %d faults, a run that was done: %t", len(s.Effects), len(s.Writes), len(s.Faults), done)
	}
	for _, job := range slices.Sorted(maps.Keys(j.effects)) {
		j.starts(job)
		j.successes(job)
		j.fence(job)
		j.beliefs(job)
		j.checkpoints(job)
	}
	for _, job := range slices.Sorted(maps.Keys(j.writes)) {
		j.tokens(job)
		j.claims(job)
		j.ledger(job)
	}
	j.processes()
	j.faults = append(j.faults, s.Unwell...)
	return j.faults
}

func (j *judge) bad(format string, args ...any) {
	j.faults = append(j.faults, fmt.Sprintf(format, args...))
}

// began reports whether e is the start of a run.
func (e *Effect) began() bool { return e.What == Started || e.What == Late }

// A start is what may be once.
type start struct {
	tick    int64
	attempt int
	try     int
}

// starts: each start was claimed before, and none comes twice; a tick is started
// once, under Rerun until five runners of it have died; none starts once it has
// succeeded.
func (j *judge) starts(job string) {
	claims := map[int64]*Write{}
	succeeded := map[int64]time.Time{}
	stopped := map[int64]bool{}
	for _, w := range j.writes[job] {
		if r := w.Record; r.Run.Status == store.Running && claims[r.Token] == nil {
			claims[r.Token] = w
		}
		if r := w.Record; r.Run.Status == store.Abandoned && r.Run.Replica == w.Replica {
			stopped[r.Token] = true
		}
		if r := w.Record; r.Run.Status == store.Succeeded && succeeded[r.Run.Tick.UnixNano()].IsZero() {
			succeeded[r.Run.Tick.UnixNano()] = w.At
		}
	}
	seen, attempts := map[start]bool{}, map[int64]map[int64]bool{}
	for _, e := range j.effects[job] {
		if !e.began() {
			continue
		}
		claim, tick := claims[e.Token], e.Tick.UnixNano()
		if claim == nil || claim.At.After(e.Got) || !claim.Record.Run.Tick.Equal(e.Tick) || claim.Record.Run.Attempt != e.Attempt || claim.Replica != e.Replica {
			j.bad("%s started, and has not claimed that", e)
		}
		if e.Tick.IsZero() {
			continue
		}
		if r := (start{tick, e.Attempt, e.Try}); seen[r] {
			j.bad("%s started twice", e)
		} else {
			seen[r] = true
		}
		if attempts[tick] == nil {
			attempts[tick] = map[int64]bool{}
		}
		attempts[tick][e.Token] = true
		n, deaths := len(attempts[tick]), 0
		for token := range attempts[tick] {
			if token < e.Token && !stopped[token] {
				deaths++
			}
		}
		if n > 1 && !j.rerun[job] || deaths >= maxDeaths {
			j.bad("%s is start %d of its tick", e, n)
		}
		if at := succeeded[tick]; !at.IsZero() && e.Got.After(at) {
			j.bad("%s started, and its tick had succeeded at %s", e, clock(at))
		}
	}
}

// successes: the effect that a tick is for is accepted once. Under Rerun a runner
// may be cut off between that and the record of it.
func (j *judge) successes(job string) {
	done := map[int64]*Effect{}
	for _, e := range j.effects[job] {
		if e.What != Done || e.Stale || e.Tick.IsZero() {
			continue
		}
		if old := done[e.Tick.UnixNano()]; old != nil && !j.rerun[job] {
			j.bad("%s succeeded, as had %s", e, old)
		}
		done[e.Tick.UnixNano()] = e
	}
}

// fence: no effect is accepted after one with a larger token.
func (j *judge) fence(job string) {
	var newest *Effect
	for _, e := range j.effects[job] {
		if e.What.note() {
			continue
		}
		if newest != nil && e.Token < newest.Token && !e.Stale {
			j.bad("%s: %s was accepted after %s", e, e.What, newest)
		}
		if newest == nil || e.Token > newest.Token {
			newest = e
		}
	}
}

// beliefs: no run believes in its lease once the service has given it, and the
// next token, to another. Asked is a lower bound of the belief, and the time of
// the answer an upper one of the claim.
func (j *judge) beliefs(job string) {
	var claims []*Write
	for _, w := range j.writes[job] {
		if w.Record.Run.Status == store.Running && (len(claims) == 0 || w.Record.Token > claims[len(claims)-1].Record.Token) {
			claims = append(claims, w)
		}
	}
	told := map[int64]bool{}
	for _, e := range j.effects[job] {
		if e.Asked.IsZero() || told[e.Token] {
			continue
		}
		i, _ := slices.BinarySearchFunc(claims, e.Token+1, func(w *Write, token int64) int { return cmp.Compare(w.Record.Token, token) })
		if i < len(claims) && e.Asked.After(claims[i].At) {
			told[e.Token] = true
			j.bad("%s believed in its lease at %s, and %s had claimed token %d at %s",
				e, clock(e.Asked), claims[i].Replica, claims[i].Record.Token, clock(claims[i].At))
		}
	}
}

// checkpoints: a run loads what was saved last before it began, or later.
func (j *judge) checkpoints(job string) {
	began := map[int64]time.Time{}
	saved := &Effect{}
	var all []*Effect
	for _, e := range j.effects[job] {
		switch {
		case e.began():
			began[e.Token] = e.Got
		case e.What == Saved:
			all = append(all, e)
			if e.Position > saved.Position {
				saved = e
			}
		case e.What == Loaded && e.Position < saved.Position:
			for _, old := range all {
				if old.Position > e.Position && old.Got.Before(began[e.Token]) {
					j.bad("%s loaded position %d, and %s had saved %d", e, e.Position, old, old.Position)
					break
				}
			}
		}
	}
}

// processes: none ends by itself, except under a run that ignores its context or
// was frozen when it had to obey; each stops when it is told to.
func (j *judge) processes() {
	for _, e := range j.Exits {
		switch {
		case e.Asked == tooLong:
			j.bad("%s, started at %s, did not stop within %s", e.Replica, clock(e.Start), stops)
		case e.Asked == sigkill && e.Code == -1, e.Asked == sigterm && e.Code == 0:
		case e.Asked == sigterm && e.Code == -1 && !e.Listened: // nobody minded signals yet
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

// String says whose effect it is.
func (e *Effect) String() string {
	if e.Tick.IsZero() {
		return fmt.Sprintf("%s token %d on %s", e.Job, e.Token, e.Replica)
	}
	return fmt.Sprintf("%s@%s attempt %d try %d token %d on %s", e.Job, e.Tick.UTC().Format(time.TimeOnly), e.Attempt, e.Try, e.Token, e.Replica)
}
