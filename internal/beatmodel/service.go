package beatmodel

// serve has the service handle a request. Requests for one blob have an order (H2), and a lease that
// has expired can be renewed until it is acquired.
func (m *Model) serve(s *State, q Request) bool {
	b := &s.Blob
	if q.ETag == stale {
		return false
	}
	lease, ours := b.Lease.Now(), b.Lease.ID == q.ID
	switch q.Op {
	case Break:
		if lease == Available {
			return false
		}
		b.Lease = Lease{State: Broken}
	case Acquire:
		if lease == Leased && !ours {
			return false
		}
		b.Lease = Lease{Leased, q.ID, m.Lease}
	case Renew:
		if lease != Leased && lease != Expired || !ours {
			return false
		}
		b.Lease.Left = m.Lease
	case Release:
		if !ours {
			return false
		}
		b.Lease = Lease{}
	case Claim, Write, Finish:
		if lease != Leased || !ours {
			return false
		}
		write(s, q)
	}
	return true
}

// write changes the record, and with it the ETag.
func write(s *State, q Request) {
	r := &s.Blob.Record
	switch {
	case q.Op == Claim && q.Token <= r.Token:
		s.Fault = "a token is claimed twice"
	case q.Op != Claim && (q.Token != r.Token || !r.Running):
		s.Fault = "a write hits the record of another run, or of a finished one"
	}
	if q.Op == Claim {
		for i := range s.Replicas {
			s.Replicas[i].Ended = 0 // it was about the token before
		}
	}
	r.Token, r.Writer, r.Running = q.Token, q.Writer, q.Op != Finish
	if q.Length > 0 {
		r.Beat = Beat{q.Token, q.Length}
	}
	s.newETag()
}
