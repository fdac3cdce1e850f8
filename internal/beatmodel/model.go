package beatmodel

// A Model is a few replicas and what may go wrong. Lengths are ticks of true time. A replica that sends no
// beats may be of an older program, which copies the field of the last holder, or have a lease that is long enough.
type Model struct {
	Beats   []uint8 // of each replica, how long its beats are trusted: L; 0: it sends none
	Lease   uint8   // how long the service's lease lasts: D
	Late    bool    // a request may be late or repeated
	Finish  bool    // holders come to an end
	Breaks  bool    // an operator breaks leases
	Crashes bool    // processes die, and start again with an empty memory
	Mistake Mistake // that the program makes
}

// A Mistake is a change of one rule that makes the program wrong.
type Mistake uint8

// The mistakes that a model can make. The tests show a counterexample for each.
const (
	NoMistake               Mistake = iota
	BreaksAnyETag                   // the break has no If-Match, and acquisition and claim use a re-read ETag
	ClaimsRereadETag                // acquisition and claim use an ETag that was read again
	ObservesFromSending             // an observation counts from the sending of its first reading
	ObservesOnThoughWritten         // an observation goes on though the ETag has changed
	ObservesWithoutBeats            // an unchanged ETag counts though the record's holder sends no beats
	ObservesOwnLength               // the follower's L counts, not the record's
	ObservesTooShort                // no room for the follower's fast clock
	TrustsFromReceipt               // trust counts from the receipt of the beat's answer
	TrustsTooLong                   // no room for the holder's slow clock
	TrustsRenewals                  // renewals extend the trust beyond the beats
	TrustsBeatsAlone                // beats extend the trust beyond the renewals
	TrustsRefusal                   // a refused beat counts as a beat
	TrustsSecondSending             // a beat that is sent again counts from then
	TrustsReadBack                  // a read-back counts as a beat
	TrustsLateAnswer                // an answer revives a trust that is over
	NoHoldOffAfterBreak             // a broken lease counts as expired
	BeatsAnyETag                    // a beat has no If-Match
	BareBeat                        // the beats' length counts, whichever token they were announced for
)

func (m *Model) is(x Mistake) bool { return m.Mistake == x }

// trusts reports whether a replica believes that no other replica acts.
func (m *Model) trusts(r *Replica, i int) bool {
	switch {
	case m.is(TrustsRenewals) || m.Beats[i] == 0:
		return r.ByLease > 0
	case m.is(TrustsBeatsAlone):
		return r.ByBeat > 0
	}
	return r.ByBeat > 0 && r.ByLease > 0
}

// wrong returns what must never be, or nothing.
func (m *Model) wrong(s *State) string {
	acting := 0
	for i := range m.Beats {
		if r := &s.Replicas[i]; r.Mode == Holding && m.trusts(r, i) {
			acting++
		}
	}
	if acting > 1 {
		return "two replicas act at once"
	}
	return s.Fault
}
