package lease

import (
	"fmt"
	"sync"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A trust is for how long a session may rely on its lease. All times are elapsed time.
type trust struct {
	clock *Clock

	mu      sync.Mutex
	until   time.Duration // its end, as far as renewals count
	beating beating
	watch   *chore // of its end; nil: it is not watched
}

// A beating is what is known of the beats of a run.
type beating struct {
	length time.Duration // zero: no run of this session is in the record, so its lease alone counts
	sent   time.Duration // when the last write that is known to be applied was first sent
	until  time.Duration // the end of the trust without another one
}

// trusted returns for how long something of a length can be trusted: an answer of the service
// about a lease, from the sending of its request on, or a beat.
func trusted(length time.Duration) time.Duration { return length - length/Drift - length/6 }

// ErrNotRenewed ends the trust in a lease that could not be renewed in time. It may still
// be ours at the service, but that cannot be known.
var ErrNotRenewed = fmt.Errorf("%w: no renewal in time", store.ErrLost)

// Left returns how long the lease can still be trusted.
func (t *trust) Left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end() - t.clock.Elapsed()
}

// end returns when the trust ends. The caller holds mu.
func (t *trust) end() time.Duration {
	if t.beating.length == 0 {
		return t.until
	}
	return min(t.until, t.beating.until)
}

// extend moves the end forward, counted from the sending of a renewal, since the
// service may have started the new term at any moment after that. An answer that is
// processed after the end extends nothing: the lease may have expired before the
// renewal revived it, and a follower may have seen it expired.
func (t *trust) extend(sent, length time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.clock.Elapsed() < t.end() {
		t.until = max(t.until, sent+trusted(length))
	}
}

// applied notes that a write was applied, which is a beat if a run is in its record. Trust that
// is over stays over: a follower may have seen no beat for long enough.
func (t *trust) applied(m signature) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case m.beat == 0:
		t.beating = beating{}
	case t.clock.Elapsed() < t.end():
		first := t.beating.length == 0
		t.beating = beating{m.beat, m.sent, m.sent + trusted(m.beat)}
		if first && t.watch != nil {
			t.watch.hasten() // the end has moved backwards
		}
	}
}
