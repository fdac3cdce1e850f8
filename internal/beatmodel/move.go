package beatmodel

// A Move is one step from a state to another.
type Move struct {
	Who  int // the replica, from 0; -1: none
	Op   Op
	What string
	To   State
}

// moves are the steps from one state.
type moves struct {
	from State
	all  []Move
}

// add adds a step and returns the state after it, for the caller to change.
func (o *moves) add(who int, what string) *State { return o.of(who, None, what) }

// of adds a step of a request.
func (o *moves) of(who int, op Op, what string) *State {
	o.all = append(o.all, Move{who, op, what, o.from})
	return &o.all[len(o.all)-1].To
}

// send adds the sending of a replica's next call, and returns the replica for further changes.
func (o *moves) send(i int, op Op) *Replica {
	s := o.of(i, op, "is sent")
	if op == Claim || op == Write || op == Finish {
		s.forget(i) // a new nonce: the replica waits for no older write any more
	}
	s.Replicas[i].Call = Call{Op: op}
	return &s.Replicas[i]
}

// nonce is the name of the write whose outcome a replica waits for.
func nonce(i int) uint8 { return uint8(i + 1) }

// startOver has a replica follow from zero: it observes no ETag.
func (s *State) startOver(i int) {
	s.forget(i)
	s.Replicas[i] = Replica{Ended: s.Replicas[i].Ended}
}

// forget replaces the nonce of a replica's write with another replica's nonce.
func (s *State) forget(i int) {
	if s.Blob.Record.Writer == nonce(i) {
		s.Blob.Record.Writer = 0
	}
	if s.Late.Writer == nonce(i) {
		s.Late.Writer = 0
	}
}

// newETag makes each ETag that a replica or a request knows an old one.
func (s *State) newETag() {
	for _, etag := range []*uint8{&s.Replicas[0].Seen.ETag, &s.Replicas[1].Seen.ETag, &s.Late.ETag} {
		if *etag != 0 {
			*etag = stale
		}
	}
}
