package beatmodel

// disturb adds what operators and machines do to a cluster.
func (m *Model) disturb(o *moves) {
	if m.Breaks {
		m.unlock(o)
	}
	for i := range m.Beats {
		if m.Crashes {
			s := o.add(i, "dies and starts anew")
			s.forget(i)
			s.Replicas[i] = Replica{}
		}
	}
}

// unlock adds what unlock --now does: it breaks the lease, and then acquires it to note that in the record,
// which it leaves running. It may die before it releases the lease.
func (m *Model) unlock(o *moves) {
	switch b := &o.from.Blob; b.Lease.Now() {
	case Leased, Expired:
		o.add(-1, "an operator breaks the lease").Blob.Lease = Lease{State: Broken}
	case Broken:
		if b.Record.Running {
			o.add(-1, "the operator notes the break").note(Lease{})
			o.add(-1, "the operator notes the break, and dies").note(Lease{Leased, fresh, m.Lease})
		}
	}
}

func (s *State) note(after Lease) {
	s.Blob.Lease, s.Blob.Record.Writer = after, 0
	s.newETag()
}

// tick adds that time passes, by clocks that are as wrong as H1 allows.
func (m *Model) tick(o *moves) {
	s := o.add(-1, "a tick passes")
	count(&s.Blob.Lease.Left)
	for i := range m.Beats {
		r := &s.Replicas[i]
		r.Ended += min(r.Ended, 1)
		count(&r.ByBeat)
		count(&r.ByLease)
		r.Seen.Age++
		r.Call.Age++
		r.Renewal.Age++
	}
}

// count counts a number of ticks down.
func count(ticks *uint8) { *ticks -= min(*ticks, 1) }
