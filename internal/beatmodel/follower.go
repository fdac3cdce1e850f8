package beatmodel

// follow adds what a replica without a claim may begin: it reads, breaks a lease whose holder's trust
// is over, acquires, and claims. When it does so is left open.
func (m *Model) follow(o *moves, i int) {
	r := &o.from.Replicas[i]
	switch {
	case r.Call.Op == Acquire:
		o.add(i, "gives its acquisition up").startOver(i)
	case r.Mode == Acquired && r.Call.Op == None:
		o.add(i, "gives its acquisition up").startOver(i)
		if m.mayClaim(r, i) {
			m.readAgain(o.send(i, Claim), o)
		}
	case r.Mode == Following && (r.Call.Op == None || r.Call.Op == Read):
		m.campaign(o, i)
	}
}

// campaign adds the calls before a claim. A break that is due does not wait for a read.
func (m *Model) campaign(o *moves, i int) {
	r := &o.from.Replicas[i]
	if r.Call.Op == None {
		m.read(o, i)
	}
	if m.mayBreak(r, i) {
		o.send(i, Break)
	}
	if m.mayAcquire(r, i) {
		to := o.send(i, Acquire)
		to.ID = fresh
		m.readAgain(to, o)
	}
}

// read adds a read. Unless its time matters, it is one step: a replica that has its answer later
// knows less, and acts later.
func (m *Model) read(o *moves, i int) {
	if m.is(ObservesFromSending) {
		o.send(i, Read)
	} else {
		m.look(o.add(i, "reads the blob"), i)
	}
}

// look is the service's answer to a read.
func (m *Model) look(s *State, i int) {
	r, b := &s.Replicas[i], &s.Blob
	sent, before := r.Call.Age, r.Seen
	r.Call = Call{}
	r.Seen = Sight{ETag: current, Record: b.Record, Lease: b.Lease.Now()}
	r.Seen.Record.Writer = 0
	switch {
	case before.ETag == current && m.counts(&b.Record),
		before.ETag != 0 && m.is(ObservesOnThoughWritten):
		r.Seen.Age = before.Age
	case m.is(ObservesFromSending):
		r.Seen.Age = sent
	}
	if m.Breaks && r.Seen.endedEarly() { // without an operator, a follower ended it, and may claim
		r.Ended = max(r.Ended, 1)
	}
}

// endedEarly reports whether an operator or a follower has ended the lease of a run.
func (s *Sight) endedEarly() bool {
	return s.Record.Running && (s.Lease == Broken || s.Lease == Available)
}

// counts reports whether an ETag that does not change proves that the trust of the record's holder is over.
// If its token has no beats, it does not: renewals leave the ETag as it is.
func (m *Model) counts(r *Record) bool {
	return r.Beats() || m.is(ObservesWithoutBeats) || m.is(BareBeat) && r.Beat.Length > 0
}

// observed reports whether a replica has seen the ETag of a holder with beats for long enough. By its own
// clock it waits 1 % longer than that holder may trust itself, since that clock may be 1 % fast. It may do so
// whether it sends beats itself or not; an older program does not, and waits for the lease to expire.
func (m *Model) observed(r *Replica, i int) bool {
	return m.counts(&r.Seen.Record) && r.Seen.Age >= m.wait(&r.Seen.Record, i)
}

// wait returns how long the holder of a record may trust itself, after its last beat or renewal.
func (m *Model) wait(r *Record, i int) uint8 {
	switch {
	case m.is(ObservesOwnLength):
		return m.Beats[i]
	case !r.Beats() && !(m.is(BareBeat) && r.Beat.Length > 0):
		return m.Lease
	case m.is(ObservesTooShort):
		return r.Beat.Length - 1
	default:
		return r.Beat.Length
	}
}

// mayBreak: the break has the ETag that was observed as its If-Match.
func (m *Model) mayBreak(r *Replica, i int) bool {
	return r.Seen.Record.Running && r.Seen.Lease != Available && r.Seen.Lease != Broken && m.observed(r, i)
}

// mayAcquire: if a break has no answer, the lease may be free although it was not seen so. To acquire
// before the claim is allowed is safe, but takes the lease from a replica that may claim.
func (m *Model) mayAcquire(r *Replica, i int) bool {
	return r.Seen.ETag != 0 && (r.Seen.Lease != Leased || m.mayClaim(r, i))
}

// mayClaim is the rule for each claim: there is no run, or the lease had expired when the ETag was read,
// or the holder's trust is over: its ETag was observed for long enough, or an operator has ended its lease
// long enough ago, so that it could neither beat nor renew since.
func (m *Model) mayClaim(r *Replica, i int) bool {
	return !r.Seen.Record.Running ||
		r.Seen.Lease == Expired ||
		m.observed(r, i) ||
		r.Ended > m.wait(&r.Seen.Record, i) ||
		r.Ended > 0 && m.is(NoHoldOffAfterBreak)
}

// afterBreak: a break that was refused was about an old ETag.
func (s *State) afterBreak(i int, ok bool) {
	r := &s.Replicas[i]
	r.Call, r.Seen.Lease = Call{}, Broken
	if !ok {
		r.Seen = Sight{}
	}
}

// afterAcquire: the observation is of no use after a refusal. Acquiring does not change the ETag, so two
// followers could break each other's leases without end.
func (m *Model) afterAcquire(s *State, i int, ok bool) {
	r := &s.Replicas[i]
	if !ok {
		s.startOver(i)
		return
	}
	r.Mode, r.ByLease, r.Call = Acquired, left(m.Lease, r.Call.Age), Call{}
}

// readAgain is the mistake to take the newest ETag for the observed ETag.
func (m *Model) readAgain(r *Replica, o *moves) {
	if m.is(BreaksAnyETag) || m.is(ClaimsRereadETag) {
		r.Seen.ETag, r.Seen.Record.Token = current, o.from.Blob.Record.Token
	}
}
