// Package locks reads what an app has in its store besides its jobs: locks, groups of jobs, and what
// is done once for a key.
package locks

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A Lock is a lock, or a group of jobs, with all its slots that were ever used.
type Lock struct {
	Name    string    `json:"name"`
	Kind    string    `json:"kind"`              // lock or group
	Slots   int       `json:"slots"`             // how many of them were ever used
	Held    int       `json:"held"`              // how many of them are held now
	Holders []Holder  `json:"holders,omitempty"` // in the order of their slots
	Token   int64     `json:"token,omitempty"`   // the newest of all slots
	Used    time.Time `json:"used,omitzero"`     // when one of them was claimed or given back last
	Error   string    `json:"error,omitempty"`   // why a record cannot be read
}

// A Holder has one slot of a lock.
type Holder struct {
	Slot    int       `json:"slot"`
	Replica string    `json:"replica,omitempty"` // empty: it has not claimed yet
	Since   time.Time `json:"since,omitzero"`
	Token   int64     `json:"token,omitempty"`
}

// A State is how far what is done once has come for its key.
type State string

const (
	NotBegun    State = "not begun"
	Running     State = "running"
	Interrupted State = "interrupted" // the replica that did it is gone, and no other has begun it again yet
	Failed      State = "failed"      // it is tried again, or given up, as the program says
	Succeeded   State = "succeeded"
)

// A Once is what is done once for one key.
type Once struct {
	Name     string    `json:"name"`
	Key      string    `json:"key,omitempty"` // empty: its record cannot be read
	State    State     `json:"state,omitempty"`
	Replica  string    `json:"replica,omitempty"`  // that does it or did it last
	At       time.Time `json:"at,omitzero"`        // when it came into this state
	Token    int64     `json:"token,omitempty"`    // the newest
	Failures int       `json:"failures,omitempty"` // of which the record knows
	Reason   string    `json:"reason,omitempty"`   // of the last failure
	Error    string    `json:"error,omitempty"`    // why the record cannot be read
}

// A Reading is the result of one listing. Zero: the app has neither locks nor work that is done once.
type Reading struct {
	Locks  []Lock // those that are held first, then those used last
	Once   []Once // the newest first
	Listed int    // how many entries the listing had, jobs left out
	Unread int    // how many of them were not read, since there are too many locks
}

// mostRead bounds how many entries of locks are read: their names are data.
const mostRead = 10_000

// Read lists an app.
func Read(ctx context.Context, from store.Lister, app string) (Reading, error) {
	b := builder{locks: map[[2]string]*Lock{}}
	err := walk(ctx, from, app, func(n entry.Name, known bool, read func() slot) {
		if b.reading.Listed++; known {
			b.add(n, read)
		}
	})
	return b.sorted(), err
}

// walk lists the entries of an app that are no job's, with a way to read their records. Their names
// begin with a digit, and come before all jobs in a listing, which ends there.
func walk(ctx context.Context, from store.Lister, app string, f func(n entry.Name, known bool, read func() slot)) error {
	return from.List(ctx, app, func(name string, e store.Entry) bool {
		name = strings.TrimPrefix(name, app+"/")
		n, ok := entry.Parse(name)
		if ok && n.Kind == entry.Job {
			return false
		}
		f(n, ok, func() slot {
			rec, err := record.Decode(e.Record, app, name)
			return slot{rec, e.State.Live(), err}
		})
		return true
	})
}

// A builder makes a reading of entries.
type builder struct {
	read    int                 // entries of locks
	locks   map[[2]string]*Lock // by kind and name
	reading Reading
}

func (b *builder) add(n entry.Name, read func() slot) {
	switch n.Kind {
	case entry.Lock, entry.Group:
		if b.read++; b.read > mostRead {
			b.reading.Unread++
			return
		}
		id := [2]string{string(n.Kind), n.Name}
		if b.locks[id] == nil {
			b.locks[id] = &Lock{Name: n.Name, Kind: string(n.Kind)}
		}
		b.locks[id].addSlot(n.Number, read())
	case entry.Once:
		b.reading.Once = append(b.reading.Once, onceOf(n.Name, read()))
	}
}

// A slot is an entry whose record is read.
type slot struct {
	rec  record.Record
	live bool  // it has a lease
	err  error // why the record cannot be read
}

func (l *Lock) addSlot(number int, s slot) {
	l.Slots++
	run := &s.rec.Run
	if s.err != nil {
		l.Error, s.rec, run = format.Error(s.err), record.Record{}, &record.Run{}
	}
	if s.live {
		h := Holder{Slot: number}
		if s.rec.MayRun() {
			h.Replica, h.Since, h.Token = run.Replica, format.UTC(run.Claimed), s.rec.Token
		}
		l.Held, l.Holders = l.Held+1, append(l.Holders, h)
	}
	if run.Claimed.IsZero() {
		return // its token dates from when the record was made
	}
	l.Token = max(l.Token, s.rec.Token)
	for _, at := range []time.Time{run.Claimed, run.Finished} {
		if at.After(l.Used) {
			l.Used = format.UTC(at)
		}
	}
}

func onceOf(name string, s slot) Once {
	o := Once{Name: name}
	if s.err != nil {
		o.Error = format.Error(s.err)
		return o
	}
	r := &s.rec
	o.Key, o.Token, o.State, o.At = strings.TrimPrefix(r.Definition.Spec, "once "), r.Token, NotBegun, format.UTC(r.Created)
	o.Failures = int(max(r.Failures, 0))
	var last event.Outcome
	if len(r.History) > 0 {
		last = r.History[0]
	}
	switch {
	case last.Status == event.Succeeded, last.Status == event.Skipped:
		o.State, o.At, o.Replica, o.Failures = Succeeded, format.UTC(last.End), last.Replica, 0
		return o
	case !r.Succeeded.IsZero():
		o.State, o.At = Succeeded, format.UTC(r.Succeeded)
		return o
	case r.MayRun() && s.live:
		o.State, o.At, o.Replica = Running, format.UTC(r.Run.Claimed), r.Run.Replica
	case r.MayRun():
		o.State, o.At, o.Replica = Interrupted, format.UTC(r.Run.Claimed), r.Run.Replica
	case o.Failures > 0:
		o.State, o.At, o.Replica = Failed, format.UTC(last.End), last.Replica
	case last.Status != "": // a stop, which is no failure
		o.State, o.At, o.Replica = Interrupted, format.UTC(last.End), last.Replica
	}
	o.Reason = last.Reason
	return o
}

// sorted puts first what people look for.
func (b *builder) sorted() Reading {
	r := b.reading
	for _, l := range b.locks {
		slices.SortFunc(l.Holders, func(a, b Holder) int { return a.Slot - b.Slot })
		r.Locks = append(r.Locks, *l)
	}
	slices.SortFunc(r.Locks, func(a, b Lock) int {
		return cmp.Or(-cmp.Compare(min(a.Held, 1), min(b.Held, 1)), b.Used.Compare(a.Used), strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind))
	})
	slices.SortFunc(r.Once, func(a, b Once) int {
		return cmp.Or(b.At.Compare(a.At), strings.Compare(a.Name, b.Name), strings.Compare(a.Key, b.Key))
	})
	return r
}

// Shown is the part of a reading that an answer has.
type Shown struct {
	Locks     []Lock `json:"locks"`               // those that are held first, then those used last
	MoreLocks int    `json:"moreLocks,omitempty"` // how many are left out
	Once      []Once `json:"once"`                // the newest first
	MoreOnce  int    `json:"moreOnce,omitempty"`  // how many are left out
	LocksNote string `json:"locksNote,omitempty"` // why some of them are not known
}

// Empty reports whether there is nothing to show.
func (r Reading) Empty() bool { return len(r.Locks)+len(r.Once) == 0 }

// Shown returns at most so many of each.
func (r Reading) Shown(most int) Shown {
	locks, once := r.Locks[:min(most, len(r.Locks))], r.Once[:min(most, len(r.Once))]
	s := Shown{Locks: append([]Lock{}, locks...), MoreLocks: len(r.Locks) - len(locks), Once: append([]Once{}, once...), MoreOnce: len(r.Once) - len(once)}
	if r.Unread > 0 {
		s.LocksNote = "entries of locks that were not read for this: " + strconv.Itoa(r.Unread)
	}
	return s
}

// Matching returns what has a text in its name, its key or the name of a replica, in any case.
func (r Reading) Matching(text string) Reading {
	text = strings.ToLower(text)
	has := func(texts ...string) bool { return strings.Contains(strings.ToLower(strings.Join(texts, "\n")), text) }
	out := Reading{Listed: r.Listed, Unread: r.Unread}
	for _, l := range r.Locks {
		texts := []string{l.Name}
		for _, h := range l.Holders {
			texts = append(texts, h.Replica)
		}
		if has(texts...) {
			out.Locks = append(out.Locks, l)
		}
	}
	for _, o := range r.Once {
		if has(o.Name, o.Key, o.Replica) {
			out.Once = append(out.Once, o)
		}
	}
	return out
}
