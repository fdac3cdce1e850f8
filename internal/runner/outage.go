package runner

import (
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
)

// An outage collects the trouble that the jobs of a replica have with the store, so
// that it is reported once when it begins and once when it is over, however many jobs it
// hits. It also distinguishes a store that answers no job from a store that refuses one job.
type outage struct {
	mu      sync.Mutex
	hit     map[*source]trouble // the sources whose last call failed
	since   time.Time           // when the first of them failed
	left    bool                // a source whose last call failed has ended, and the store has answered none since
	answers int                 // of the store to any source, counted
	err     error               // why the store answers no source; nil: it does, as far as known
}

// A trouble belongs to one source.
type trouble struct {
	answers int // the count of answers when it began
	err     error
}

// begin notes a call of s that failed. The store is out of reach only if it has
// answered no source since: a blob that is refused is the trouble of one job.
func (o *outage) begin(s *source, err error, emit func(event.Event)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.hit) == 0 {
		o.hit = map[*source]trouble{}
		if !o.left {
			o.since = time.Now()
			emit(event.Event{Kind: event.StoreTrouble, Note: s.state.job, Err: err})
		}
	}
	t, again := o.hit[s]
	if !again {
		t.answers = o.answers
	}
	t.err = err
	o.hit[s] = t
	// No source has had an answer since the trouble of s began. The renewals of a holder count only
	// after a renewal that has failed, so a listing that is refused would look like a store out of reach.
	if t.answers == o.answers && !s.lists {
		o.err = err
	}
}

// end notes a call of s that was answered.
func (o *outage) end(s *source, emit func(event.Event)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers++
	o.err = nil
	if len(o.hit) == 0 && !o.left {
		return
	}
	delete(o.hit, s)
	o.left = false
	if len(o.hit) == 0 {
		emit(event.Event{Kind: event.StoreBack, Took: time.Since(o.since).Round(time.Second)})
	}
}

// leave forgets the trouble of a source that is about to end, a manual run: no call of
// it will be answered any more. The loop of the same job may have trouble of its own,
// which then stands for the job. The trouble of a source which has given up still describes the
// store: until another one is answered, it is neither over nor reported again.
func (o *outage) leave(s *source, gaveUp bool, emit func(event.Event)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, hit := o.hit[s]; !hit {
		return
	}
	delete(o.hit, s)
	var left error
	for other, t := range o.hit {
		if other.state == s.state {
			left = t.err
		}
	}
	s.state.set(func(n *snapshot) { n.storage = left })
	o.left = o.left || gaveUp
	if len(o.hit) == 0 && !o.left {
		o.err = nil
		emit(event.Event{Kind: event.StoreBack, Took: time.Since(o.since).Round(time.Second), Note: "the run by hand that asked the store is over"})
	}
}

// now returns why the store is out of reach, and whether it has ever answered.
func (o *outage) now() (unreachable error, reached bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err, o.answers > 0
}
