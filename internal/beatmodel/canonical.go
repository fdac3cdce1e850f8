package beatmodel

import "slices"

// An ETag is compared with the blob's alone, and so is a creation. So two of each are enough: the blob's,
// and an old one.
const (
	current = 1
	stale   = 2
	fresh   = 15 // an ETag, a creation or an id that nothing else has
	anew    = fresh
)

// baseToken is the token of each record: the others count from it, so that there may be any number.
const baseToken = 4

// canonical gives states one form that differ in names alone, or in what can have no effect. Without it
// there would be a new state for each beat.
func (m *Model) canonical(s *State) {
	s.renameETags()
	for i := range m.Beats {
		m.tidy(s, i)
	}
	m.tidyLate(s)
	s.renameTokens()
	s.renameCreations()
	if m.Swap {
		m.sort(s)
	}
	s.renameIDs()
	slices.SortFunc(s.Late[:m.Late], func(a, b Request) int { return b.order() - a.order() })
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
	r.Rest = min(r.Rest, m.pace(i))
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
	return m.longestCall(op)
}

// tidyLate leaves out late requests that the service will refuse whenever they arrive: an old ETag
// never comes back, nor does the lease of an id that no acquisition has.
func (m *Model) tidyLate(s *State) {
	for k, q := range s.Late[:m.Late] {
		if q.ETag == stale || q.ID != 0 && q.Op != Acquire && !s.mayLease(q.ID) {
			s.Late[k] = Request{}
		}
	}
}

// mayLease reports whether a lease has an id, or can still get it.
func (s *State) mayLease(id uint8) bool {
	return s.Blob.Lease.ID == id ||
		slices.ContainsFunc(s.Replicas[:], func(r Replica) bool { return r.ID == id && r.Call.Op == Acquire }) ||
		slices.ContainsFunc(s.Late[:], func(q Request) bool { return q.ID == id && q.Op == Acquire })
}

// newETag makes each ETag that a replica or a request knows an old one.
func (s *State) newETag() {
	s.Blob.ETag = fresh
	s.renameETags()
}

func (s *State) renameETags() {
	now := s.Blob.ETag
	for i := range s.Replicas {
		rename(&s.Replicas[i].Seen.ETag, now)
	}
	for k := range s.Late {
		rename(&s.Late[k].ETag, now)
	}
	s.Blob.ETag = current
}

func (s *State) renameCreations() {
	for i := range s.Replicas {
		rename(&s.Replicas[i].Made, s.Blob.Made)
	}
	s.Blob.Made = current
}

// rename makes a name that is the blob's the current one, and another an old one. 0 is no name.
func rename(name *uint8, now uint8) {
	switch *name {
	case 0:
	case now:
		*name = current
	default:
		*name = stale
	}
}

func (s *State) renameTokens() {
	shift := baseToken - int(s.Blob.Record.Token)
	rename := func(token *uint8) {
		if *token != 0 {
			*token = uint8(max(1, int(*token)+shift))
		}
	}
	rename(&s.Blob.Record.Token)
	rename(&s.Blob.Record.Beat.Token)
	for i := range s.Replicas {
		rename(&s.Replicas[i].Seen.Record.Token)
		rename(&s.Replicas[i].Seen.Record.Beat.Token)
	}
	for k := range s.Late {
		rename(&s.Late[k].Token)
	}
}

// renameIDs counts the ids of leases in the order in which the state has them.
func (s *State) renameIDs() {
	var names [fresh + 1]uint8
	next := uint8(0)
	rename := func(id *uint8) {
		if *id != 0 && names[*id] == 0 {
			next++
			names[*id] = next
		}
		*id = names[*id]
	}
	rename(&s.Blob.Lease.ID)
	for i := range s.Replicas {
		rename(&s.Replicas[i].ID)
	}
	for k := range s.Late {
		rename(&s.Late[k].ID)
	}
}

// order sorts late requests: which of them was sent first makes no difference.
func (q Request) order() int {
	return number(uint8(q.Op), q.ETag, q.ID, q.Token, q.Writer, q.Length)
}

// sort makes states one that differ in which replica is which.
func (m *Model) sort(s *State) {
	for i := 1; i < len(m.Beats); i++ {
		for k := i; k > 0 && m.Beats[k] == m.Beats[k-1] && s.Replicas[k].order() < s.Replicas[k-1].order(); k-- {
			s.swap(k-1, k)
		}
	}
}

// swap has two replicas change places.
func (s *State) swap(i, k int) {
	s.Replicas[i], s.Replicas[k] = s.Replicas[k], s.Replicas[i]
	rename := func(writer *uint8) {
		switch *writer {
		case nonce(i):
			*writer = nonce(k)
		case nonce(k):
			*writer = nonce(i)
		}
	}
	rename(&s.Blob.Record.Writer)
	for n := range s.Late {
		rename(&s.Late[n].Writer)
	}
}

func (r *Replica) order() int {
	seen := number(r.Seen.ETag, r.Seen.Age, uint8(r.Seen.Lease), r.Seen.Record.Token, r.Seen.Record.Beat.Token, r.Seen.Record.Beat.Length)
	calls := number(uint8(r.Call.Op), uint8(r.Call.Stage), r.Call.Age, uint8(r.Renewal.Op), r.Renewal.Age, r.Rest)
	rest := number(uint8(r.Mode), r.Made, r.HoldOff, r.Ended, r.ByBeat, r.ByLease)
	return seen ^ calls<<24 ^ rest<<40
}

// number makes one number of small ones.
func number(all ...uint8) (n int) {
	for _, x := range all {
		n = n<<4 | int(x)
	}
	return n
}
