package check

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// An index finds events.
type index struct {
	jobs     []string
	slots    []string                     // the entries of locks, and of what is done once
	entries  []string                     // jobs and slots
	groups   []string                     // names
	leases   map[string][]Event           // when the slots of groups are leased, from Time to End
	slotOf   map[string]string            // the entry of a function that holds a lock, by its call
	events   map[string]map[What][]*Event // by job
	leased   map[string][]*Event          // requests under a lease, by its id
	crashed  map[string]time.Time         // by replica
	freezes  map[string][]*Event          // by replica
	blocks   map[string][]*Event          // of the log, by replica
	writes   map[string][]*Event          // by job
	claims   map[string][]*Event
	returned map[string][]*Event // the writes that took a claim back, by job
	tokens   map[string]map[int64]*Event
	runs     map[string][]Event
	terms    map[string]map[int64]*term // by job and token
	told     map[string][]told          // by job
}

func newIndex(l *Log) *index {
	x := &index{leases: map[string][]Event{}, slotOf: map[string]string{}, events: map[string]map[What][]*Event{}, leased: map[string][]*Event{}, crashed: map[string]time.Time{}, freezes: map[string][]*Event{}, blocks: map[string][]*Event{},
		writes: map[string][]*Event{}, claims: map[string][]*Event{}, returned: map[string][]*Event{}, tokens: map[string]map[int64]*Event{}, runs: map[string][]Event{},
		terms: map[string]map[int64]*term{}, told: map[string][]told{}}
	x.findSlots(l.Events)
	lawless := newLawless(l.Events)
	for _, e := range l.Events {
		if lawless.of(e) {
			continue
		}
		job := x.entryOf(e)
		if x.events[job] == nil {
			x.events[job] = map[What][]*Event{}
			x.jobs = append(x.jobs, job)
		}
		x.events[job][e.What] = append(x.events[job][e.What], e)
		switch e.What {
		case Request:
			if e.Lease != "" {
				x.leased[e.Lease] = append(x.leased[e.Lease], e)
			}
		case Crash:
			x.crashed[e.Replica] = e.Time
		case Freeze:
			x.freezes[e.Replica] = append(x.freezes[e.Replica], e)
		case Blocked:
			x.blocks[e.Replica] = append(x.blocks[e.Replica], e)
		}
		if e.Writes() && e.OK() {
			x.writes[e.Job] = append(x.writes[e.Job], e)
		}
	}
	x.sortEntries(l)
	x.findGroups(l)
	for _, job := range x.entries {
		x.addClaims(job)
		x.addRuns(job)
		x.addTerms(job)
		x.addTold(job)
	}
	return x
}

// addClaims finds the writes that brought a new token, less those that were taken
// back: what runs under one of them was not claimed.
func (x *index) addClaims(job string) {
	var last int64
	x.tokens[job] = map[int64]*Event{}
	for _, e := range x.writes[job] {
		r := e.Record
		if r == nil {
			continue
		}
		if r.Run.Status == store.Running && r.Token != last && e.Op != "create" && e.Replica != Operator {
			x.claims[job] = append(x.claims[job], e)
			if x.tokens[job][r.Token] == nil {
				x.tokens[job][r.Token] = e
			}
		}
		if e.Op == "take back" {
			x.takeBack(job, e)
		}
		last = r.Token
	}
}

func (x *index) takeBack(job string, e *Event) {
	x.claims[job] = slices.DeleteFunc(x.claims[job], func(c *Event) bool { return c.Lease == e.Lease && c.Record.Token == e.Record.Token })
	x.returned[job] = append(x.returned[job], e)
	delete(x.tokens[job], e.Record.Token)
}

// addRuns finds the calls of Do. What a crashed replica goes on to do in our
// memory does not count: its runs end with it.
func (x *index) addRuns(job string) {
	for _, e := range x.events[job][Ran] {
		r := *e
		r.Job = job
		if c := x.crashed[r.Replica]; !c.IsZero() {
			if r.Time.After(c) {
				continue
			}
			if r.End.IsZero() || r.End.After(c) {
				r.End = c
			}
			if r.Cancelled.After(c) {
				r.Cancelled = time.Time{}
			}
		}
		x.runs[job] = append(x.runs[job], r)
	}
}

// of returns the events of a job, or with none those that are of no job, in the
// order of time.
func (l *Log) of(job string, what What) []*Event { return l.index.events[job][what] }

// leased returns the requests under the lease of a claim, in the order of time.
func (l *Log) leased(claim *Event) iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		for _, e := range l.index.leased[claim.Lease] {
			if e.Job == claim.Job && !yield(e) {
				return
			}
		}
	}
}

// between returns those of events that come after from and before to.
func between(events []*Event, from, to time.Time) []*Event {
	first, _ := slices.BinarySearchFunc(events, from, func(e *Event, t time.Time) int { return cmp.Or(e.Time.Compare(t), -1) })
	last, _ := slices.BinarySearchFunc(events, to, func(e *Event, t time.Time) int { return e.Time.Compare(t) })
	return events[first:max(first, last)]
}

// writes returns what the service took for a job.
func (l *Log) writes(job string) []*Event { return l.index.writes[job] }

// claimed returns the writes that began the runs of a job.
func (l *Log) claimed(job string) []*Event { return l.index.claims[job] }

// claimOf is the claim that a token comes from, nil if there is none.
func (l *Log) claimOf(job string, token int64) *Event { return l.index.tokens[job][token] }

// runs returns the calls of Do for a job, in the order of their starts.
func (l *Log) runs(job string) []Event { return l.index.runs[job] }

// crashed is when a replica was killed, zero if it was not.
func (l *Log) crashed(replica string) time.Time { return l.index.crashed[replica] }

// frozen is the last suspension of a replica that touches the time from a to b.
// One that follows before the end of the one before was noticed goes on with it.
func (l *Log) frozen(replica string, a, b time.Time) (last *Event) {
	for _, e := range l.index.freezes[replica] {
		switch {
		case e.Time.After(b) || e.End.Before(a):
		case last != nil && !last.Time.Before(a) && !e.Time.After(last.End.Add(noticed)):
			last = &Event{Time: last.Time, End: e.End}
		default:
			last = e
		}
	}
	return last
}

// moment is how long after a suspension the first thing happens at the latest.
const moment = 2 * time.Millisecond

// asleep is the last suspension of a run until t. The run may be one that was to begin
// meanwhile: it then does, a moment after.
func (l *Log) asleep(r *Event, t time.Time) *Event {
	return l.frozen(r.Replica, r.Time.Add(-moment), t)
}

func (l *Log) end() time.Time {
	if len(l.Events) == 0 {
		return time.Time{}
	}
	return l.Events[len(l.Events)-1].Time
}

// everywhere reports whether a job runs on each replica: it has no entry.
func (l *Log) everywhere(job string) bool {
	for replica := range l.Fleet {
		if d := l.definition(replica, job); d != nil && d.EveryReplica {
			return true
		}
	}
	return false
}

// definition is what a replica was told of a job, nil if nothing.
func (l *Log) definition(replica, job string) *Definition {
	for i, d := range l.Fleet[replica] {
		if d.Name == job {
			return &l.Fleet[replica][i]
		}
	}
	return nil
}
