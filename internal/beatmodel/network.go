package beatmodel

// request returns what a replica's call asks of the service.
func (m *Model) request(r *Replica, i int, op Op) Request {
	q := Request{Op: op, ETag: r.Seen.ETag, ID: r.ID}
	switch op {
	case Break:
		q.ID = 0
	case Renew, Release:
		q.ETag = 0
	case Claim:
		q.Token, q.Writer, q.Length = r.Seen.Record.Token+1, nonce(i), m.Beats[i]
	case Write, Finish:
		q.Token, q.Writer = r.Seen.Record.Token, nonce(i)
	}
	if op == Write && m.is(BeatsAnyETag) || op == Break && m.is(BreaksAnyETag) {
		q.ETag = 0
	}
	return q
}

// travel adds what may become of a request: it is served, with or without an answer, copied or lost.
// A request that is late has been copied and lost, and so has a request that the client library repeats.
func (m *Model) travel(o *moves, i int, c Call) {
	if c.Op == None || c.Stage != Sent {
		return
	}
	if c.Op == Read {
		m.look(o.add(i, "reads the blob"), i)
		return
	}
	q := m.request(&o.from.Replicas[i], i, c.Op)
	s := o.of(i, c.Op, "arrives")
	m.answered(s, i, c, m.serve(s, q))
	s = o.of(i, c.Op, "arrives, and its answer is lost")
	m.serve(s, q)
	s.timeOut(i, c.Op)
	o.of(i, c.Op, "is lost").timeOut(i, c.Op)
	if m.Late && o.from.Late.Op == None {
		o.of(i, c.Op, "is copied, and the copy is late").Late = q
	}
}

// answered has a replica do what follows an answer. A holder may do it later: see Done.
func (m *Model) answered(s *State, i int, c Call, ok bool) {
	switch c.Op {
	case Break:
		s.afterBreak(i, ok)
	case Acquire:
		m.afterAcquire(s, i, ok)
	case Renew:
		m.afterRenewal(s, i, ok)
	case Release:
		s.startOver(i)
	default:
		if ok {
			s.Replicas[i].Call.Stage = Done
		} else {
			m.afterRefusal(s, i)
		}
	}
}

// timeOut has a replica do what follows a call without an answer: it sends an acquisition again, with the
// same id and ETag, and reads after a write.
func (s *State) timeOut(i int, op Op) {
	switch r := &s.Replicas[i]; op {
	case Break:
		r.Call = Call{}
	case Renew:
		r.Renewal = Call{}
	case Release:
		s.startOver(i)
	case Claim, Write, Finish:
		r.Call.Stage = TimedOut
	}
}

// arrive adds what may become of a request whose answer is of no use to any replica.
func (m *Model) arrive(o *moves) {
	q := o.from.Late
	if q.Op == None {
		return
	}
	o.of(-1, q.Op, "is lost, late").Late = Request{}
	s := o.of(-1, q.Op, "arrives late")
	s.Late = Request{}
	m.serve(s, q)
}
