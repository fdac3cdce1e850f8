package beatmodel

// A prompt model asks how long it takes to replace a dead holder. It begins when the holder dies, just
// after it has sent a beat. Each way of a request takes Prompt ticks at most and none is lost; followers read
// at least each third of L, and do at once what they may do.

// crashed returns the first state of a prompt model.
func (m *Model) crashed() State {
	s := State{Alone: 1}
	s.Blob = Blob{Made: current, ETag: current, Lease: Lease{Leased, fresh, m.Lease}}
	s.Blob.Record = Record{Running: true, Token: baseToken, Beat: Beat{baseToken, m.Beats[0]}}
	s.Late[0] = Request{Op: Write, ETag: current, ID: fresh, Token: baseToken}
	for i := range m.Beats {
		s.Replicas[i].Rest = m.pace(i) - m.Prompt // its next read may come just before the last beat
	}
	return s
}

// pace returns how often a replica reads.
func (m *Model) pace(i int) uint8 { return m.Beats[i] / 3 }

// mayPass reports whether time may pass: in a prompt model only if there is nothing to be done first.
func (m *Model) mayPass(s *State) bool {
	if m.Prompt == 0 {
		return true
	}
	if s.Late[0].Op != None && s.Alone > m.Prompt {
		return false
	}
	for i := range m.Beats {
		if r := &s.Replicas[i]; m.mustAct(r, i) || r.Call.Op != None && r.Call.Age >= m.longestCall(r.Call.Op) {
			return false
		}
	}
	return true
}

// mustAct reports whether a replica has something to begin.
func (m *Model) mustAct(r *Replica, i int) bool {
	switch {
	case r.Call.Op != None && r.Call.Op != Read:
		return false
	case r.Mode == Acquired:
		return m.mayClaim(r, i)
	}
	return r.Call.Op == None && r.Rest >= m.pace(i) || m.mayBreak(r, i) || m.mayAcquire(r, i)
}

// longestCall returns how many ticks a call takes at most. The model ends when the claim arrives.
func (m *Model) longestCall(op Op) uint8 {
	switch op {
	case None:
		return 0
	case Claim:
		return m.Prompt
	}
	return 2 * m.Prompt
}
