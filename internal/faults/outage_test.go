package faults_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// An outage comes in the first half of a run and goes.
type outage struct {
	fault  fault
	share  float64 // of the requests that it strikes
	way    string  // the connection string; empty: byKey
	length time.Duration
	all    bool    // replicas; else the one that runs alone
	mean   float64 // requests that a replica may send in a second of a long outage; zero: half a one

	// tell looks at a replica that is hit, at the end of a long outage. Nil:
	// nobody does.
	tell func(w *world, r *replica)
}

// long is a job whose runs span many renewals, and of which another replica
// takes over at once what it can.
var long = job{every: time.Minute, takes: 40 * time.Second, interrupted: soloist.Rerun}

func (o outage) in(w *world) {
	if o.way != "" {
		w.config = by(o.way)
	}
	w.start("a", "b")
	holder, r := w.running()
	time.Sleep(w.upTo(long.takes / 2))
	begin := time.Now()
	if f := w.sometimes(o.share, o.fault); o.all {
		w.meet(f)
	} else {
		holder.line.meet(f)
	}
	time.Sleep(o.length)
	for _, r := range w.replicas {
		if (o.all || r == holder) && o.tell != nil && o.length > D {
			o.tell(w, r)
		}
	}
	over := time.Now()
	w.meet(nil)
	w.wellAfter(over)
	switch lost := errors.Is(w.outcome(r).cause, store.ErrLost); {
	case !lost && o.share == 1 && o.length > D:
		w.t.Errorf("the run ended with %v, want ErrLost", w.outcome(r).cause)
	case lost && (o.share < 0.1 || o.length < D/2):
		w.t.Error("the run was lost for nothing")
	}
	bound := perSecond
	if o.share < 1 {
		bound = perSecondAtBest
	}
	w.bounded(bound, begin, over)
	o.meanwhile(w, begin, over)
}

// meanwhile checks how much is asked in the long run, when pauses have grown.
func (o outage) meanwhile(w *world, begin, over time.Time) {
	w.t.Helper()
	mean := o.mean
	if mean == 0 {
		mean = 0.5
	}
	for _, r := range w.replicas {
		if n := r.line.number(begin, over); o.share == 1 && n > 40+int(mean*o.length.Seconds()) {
			w.t.Errorf("%s sent %d requests in %s", r.Replica, n, o.length)
		}
	}
}

// What a replica with one job may send within a second to a service that
// refuses everything, and to one of which an answer now and then starts its
// pauses anew.
const perSecond, perSecondAtBest = 8, 12

// bounded checks the busiest second from begin to a second after the end.
func (w *world) bounded(bound int, begin, over time.Time) {
	w.t.Helper()
	for _, r := range w.replicas {
		if n := r.line.busiest(begin, over.Add(time.Second)); n > bound {
			w.t.Errorf("%s sent %d requests in a second", r.Replica, n)
		}
	}
}

// busiest is the largest number of requests that a line sent within a second.
func (l *line) busiest(from, to time.Time) int {
	var sent []time.Time
	most := 0
	for _, c := range l.sent() {
		if c.sent.Before(from) || c.sent.After(to) {
			continue
		}
		for sent = append(sent, c.sent); c.sent.Sub(sent[0]) >= time.Second; {
			sent = sent[1:]
		}
		most = max(most, len(sent))
	}
	return most
}

// number is how many requests a line sent.
func (l *line) number(from, to time.Time) (n int) {
	for _, c := range l.sent() {
		if !c.sent.Before(from) && !c.sent.After(to) {
			n++
		}
	}
	return n
}

// each runs an outage of several lengths, of the replica that runs and of all.
func each(t *testing.T, name string, o outage, lengths ...time.Duration) {
	for _, length := range lengths {
		for whose, all := range map[string]bool{"the holder": false, "all": true} {
			o := o
			o.length, o.all = length, all
			t.Run(fmt.Sprintf("%s, %s, of %s", name, length, whose), func(t *testing.T) {
				t.Parallel()
				in(t, long, o.in)
			})
		}
	}
}

func TestOutages(t *testing.T) {
	for name, f := range map[string]fault{
		"500":                        refuse(500, "InternalError"),
		"502":                        refuse(502, ""),
		"503":                        refuse(503, "ServerBusy"),
		"refused":                    refused,
		"reset":                      reset,
		"reset after it was applied": dropped,
		"no name":                    noName,
	} {
		for _, share := range []float64{0.05, 0.5, 1} {
			o := outage{fault: f, share: share, way: bySignature, tell: func(w *world, r *replica) {
				if h := r.Health(); h.Storage == nil && share == 1 {
					w.t.Errorf("%s: health tells nothing: %+v", r.Replica, h)
				}
			}}
			each(t, fmt.Sprintf("%s, %g%%", name, 100*share), o,
				time.Second, 5*time.Second, time.Minute, 10*time.Minute)
		}
	}
}
