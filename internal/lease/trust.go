package lease

import "time"

// A trust is for how long a session may rely on its lease. All times are elapsed time.
type trust struct {
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

// end returns when the trust ends.
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
func (t *trust) extend(now, sent, length time.Duration) {
	if now < t.end() {
		t.until = max(t.until, sent+trusted(length))
	}
}

// applied notes that a write was applied, which is a beat if a run is in its record. Trust that
// is over stays over: a follower may have seen no beat for long enough.
func (t *trust) applied(now time.Duration, m signature) {
	switch {
	case m.beat == 0:
		t.beating = beating{}
	case now < t.end():
		first := t.beating.length == 0
		t.beating = beating{m.beat, m.sent, m.sent + trusted(m.beat)}
		if first && t.watch != nil {
			t.watch.hasten() // the end has moved backwards
		}
	}
}
