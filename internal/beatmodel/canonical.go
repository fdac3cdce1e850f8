package beatmodel

// canonical gives states one form that differ in names alone, or in what can have no effect. Without it
// there would be a new state for each beat.
func (m *Model) canonical(s *State) {
	for i := range m.Beats {
		m.tidy(s, i)
	}
	if s.Late.ETag == stale { // it never comes back, so the request will be refused
		s.Late = Request{}
	}
	s.rename()
}

// tidy leaves out what a replica has no use for.
func (m *Model) tidy(s *State, i int) {
	r := &s.Replicas[i]
	switch {
	case r.Mode == Holding && !m.trusts(r, i) && !m.is(TrustsLateAnswer):
		s.startOver(i)
	case r.Mode < Holding && r.Seen.ETag == stale && r.Call.Op != Claim && !m.usesOldETags():
		s.startOver(i) // the service would refuse all that it asks
	}
	switch r.Mode {
	case Following:
		if r.Call.Op != Acquire {
			r.ID = 0
		}
	case Finishing:
		r.ByBeat, r.ByLease, r.Renewal = 0, 0, Call{}
	}
	if m.Beats[i] == 0 {
		r.ByBeat = 0
	}
	r.Ended = min(r.Ended, 1+m.wait(&s.Blob.Record, i))
	if !s.Blob.Record.Running {
		r.Ended = 0
	}
	m.tidyAges(r, i)
}

// usesOldETags reports whether a mistake makes an old ETag a new one.
func (m *Model) usesOldETags() bool {
	return m.is(BreaksAnyETag) || m.is(ClaimsRereadETag) || m.is(ObservesOnThoughWritten)
}

// tidyAges leaves out ages that count for nothing, and how far they are beyond all limits.
func (m *Model) tidyAges(r *Replica, i int) {
	limit := m.wait(&r.Seen.Record, i)
	if r.Seen.ETag == 0 || r.Mode >= Holding || !m.counts(&r.Seen.Record) || !r.Seen.Record.Running {
		limit = 0
	}
	r.Seen.Age = min(r.Seen.Age, limit)
	r.Renewal.Age = min(r.Renewal.Age, m.ageLimit(r.Renewal.Op, i))
	r.Call.Age = min(r.Call.Age, m.ageLimit(r.Call.Op, i))
}

func (m *Model) ageLimit(op Op, i int) uint8 {
	switch {
	case op == Acquire || op == Renew || op == Read && m.is(ObservesFromSending):
		return m.Lease
	case op == Claim || op == Write:
		return m.Beats[i]
	}
	return 0
}

// rename counts tokens from the record's, and the ids of leases in the order in which the state has them.
func (s *State) rename() {
	shift := baseToken - int(s.Blob.Record.Token)
	var ids [fresh + 1]uint8
	next := uint8(0)
	name := func(id *uint8, tokens ...*uint8) {
		if *id != 0 && ids[*id] == 0 {
			next++
			ids[*id] = next
		}
		*id = ids[*id]
		for _, token := range tokens {
			if *token != 0 {
				*token = uint8(max(1, int(*token)+shift))
			}
		}
	}
	name(&s.Blob.Lease.ID, &s.Blob.Record.Token, &s.Blob.Record.Beat.Token)
	for i := range s.Replicas {
		r := &s.Replicas[i]
		name(&r.ID, &r.Seen.Record.Token, &r.Seen.Record.Beat.Token)
	}
	name(&s.Late.ID, &s.Late.Token)
}
