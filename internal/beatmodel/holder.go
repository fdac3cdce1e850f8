package beatmodel

// hold adds what a replica with a claim may do: it beats, renews and ends, one write at a time, and
// finds out what became of each write.
func (m *Model) hold(o *moves, i int) {
	r := &o.from.Replicas[i]
	switch {
	case r.Call.Op == None && r.Mode == Holding:
		m.goOn(o, i)
	case r.Call.Stage == Done:
		m.confirm(o.add(i, "has the answer"), i)
		o.add(i, "gets no answer").Replicas[i].Call.Stage = TimedOut
	case r.Call.Stage == TimedOut:
		m.readBack(o, i)
	}
	if r.Mode == Holding && r.Renewal.Op == None {
		o.of(i, Renew, "is sent").Replicas[i].Renewal = Call{Op: Renew}
	}
}

func (m *Model) goOn(o *moves, i int) {
	if m.Beats[i] > 0 {
		o.send(i, Write)
	}
	if m.Finish {
		o.send(i, Finish).Mode = Finishing
	}
}

// confirm counts a write of this replica that is in the record. The claim is the first beat. Trust that is
// over is final: another replica may have had the lease since.
func (m *Model) confirm(s *State, i int) {
	r := &s.Replicas[i]
	known := Sight{ETag: stale, Record: Record{Token: r.Seen.Record.Token}}
	switch {
	case r.Call.Op == Finish:
		r.Call = Call{Op: Release}
		return
	case r.Call.Op == Claim:
		known.Record.Token++
	case !m.trusts(r, i) && !m.is(TrustsLateAnswer):
		s.startOver(i)
		return
	}
	if s.Blob.Record.Writer == nonce(i) { // nothing was written since
		known.ETag = current
	}
	r.Mode, r.ByBeat, r.Seen, r.Call = Holding, m.trust(r.Call.Age, i), known, Call{}
}

// trust returns how long a beat is trusted whose age counts from its first sending. By its own clock the
// replica trusts it 1 % shorter, since that clock may be 1 % slow.
func (m *Model) trust(age uint8, i int) uint8 {
	switch {
	case m.is(TrustsFromReceipt):
		age = 0
	case m.is(TrustsTooLong):
		return left(m.Beats[i]+1, age)
	}
	return left(m.Beats[i], age)
}

// left returns what is left of a length after an age.
func left(length, age uint8) uint8 { return length - min(length, age) }

// afterRefusal is the read after a write that was refused. The write may nevertheless be in the record, if
// the client library has sent it twice. Otherwise the trust ends.
func (m *Model) afterRefusal(s *State, i int) {
	r := &s.Replicas[i]
	switch {
	case s.written(i) || m.is(TrustsRefusal) && r.Call.Op == Write:
		m.confirm(s, i)
	default:
		s.startOver(i)
	}
}

// written reports whether the record shows the nonce that a replica looks for.
func (s *State) written(i int) bool { return s.Blob.Record.Writer == nonce(i) }

// readBack adds what follows a write without an answer. The client library sends it again, or the replica
// reads. If the ETag is the old one, it sends the write again, too. A read extends no trust.
func (m *Model) readBack(o *moves, i int) {
	r := &o.from.Replicas[i]
	again := &o.add(i, "sends its write again").Replicas[i]
	again.Call.Stage = Sent
	if m.is(TrustsSecondSending) {
		again.Call.Age = 0
	}
	switch {
	case o.from.written(i):
		s := o.add(i, "reads its write back")
		if m.is(TrustsReadBack) {
			s.Replicas[i].Call.Age = 0
		}
		m.confirm(s, i)
	case r.Seen.ETag != current:
		o.add(i, "reads another's write, and stops").startOver(i)
	}
}

func (m *Model) afterRenewal(s *State, i int, ok bool) {
	r := &s.Replicas[i]
	age := r.Renewal.Age
	r.Renewal = Call{}
	switch {
	case !ok:
		s.startOver(i)
	case m.trusts(r, i) || m.is(TrustsLateAnswer):
		r.ByLease = left(m.Lease, age)
	}
}
