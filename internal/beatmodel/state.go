package beatmodel

// An ETag is compared with the blob's alone, so two are enough: the blob's, and an old one.
const (
	current = 1
	stale   = 2
	fresh   = 15 // an id that nothing else has
)

// baseToken is the token of each record: the others count from it, so that there may be any number.
const baseToken = 4

// A State is all that there is at one instant. Times are ticks that have passed or are left, so
// states that differ in the date alone are one.
type State struct {
	Blob     Blob
	Replicas [2]Replica
	Late     Request // in the network, and its answer is of no use to any replica; Op None: there is none
	Fault    string  // what a write did that no write may do
}

// A Blob is the entry of one job at the service.
type Blob struct {
	Record Record // of the ETag that is the current one
	Lease  Lease
}

// A Record is what the blob's metadata says.
type Record struct {
	Running bool
	Token   uint8
	Writer  uint8 // nonce of the write: 1 + the replica that waits for its outcome, 0: none does any more
	Beat    Beat
}

// A Beat says that the holder of a token writes the record every third of Length. A program that
// does not know the field copies it.
type Beat struct{ Token, Length uint8 }

// Beats reports whether the record's current holder sends beats.
func (r *Record) Beats() bool { return r.Beat.Length > 0 && r.Beat.Token == r.Token }

// A Lease is the service's lease of the blob. It has expired if it is Leased and has no time left.
type Lease struct {
	State LeaseState
	ID    uint8
	Left  uint8
}

// A LeaseState is what a read returns about the lease.
type LeaseState uint8

// The states of a lease.
const (
	Available LeaseState = iota
	Leased
	Expired
	Broken
)

// Now returns the state that a read returns.
func (l *Lease) Now() LeaseState {
	if l.State == Leased && l.Left == 0 {
		return Expired
	}
	return l.State
}

// A Replica is one process that follows or holds.
type Replica struct {
	Mode    Mode
	Seen    Sight
	Ended   uint8 // 1 + the ticks since it first saw the lease ended early under the record's token, 0: it has not
	ID      uint8 // of its lease
	ByBeat  uint8 // ticks of trust left by the last beat
	ByLease uint8 // ticks of trust left by the last renewal
	Call    Call  // a read, or a write of blob or lease; one at a time
	Renewal Call
}

// A Mode is what a replica does.
type Mode uint8

// The modes of a replica.
const (
	Following Mode = iota
	Acquired       // it has the lease, and no claim yet
	Holding        // its claim is in the record: it acts while it trusts itself
	Finishing      // it acts no more, writes that, and releases the lease
)

// A Sight is what a replica knows of the blob: by its last read if it follows, by its last write if it
// holds.
type Sight struct {
	ETag   uint8 // 0: it knows nothing
	Record Record
	Lease  LeaseState
	Age    uint8 // ticks since the receipt of the first reading that showed it
}

// A Call is a request of a replica that waits for its answer.
type Call struct {
	Op    Op
	Stage Stage
	Age   uint8 // ticks since the request was first sent
}

// An Op is an operation of the service.
type Op uint8

// The operations of the service.
const (
	None Op = iota
	Read
	Break
	Acquire
	Claim
	Write // a beat
	Finish
	Release
	Renew
)

// A Stage is how far a call is.
type Stage uint8

// The stages of a call. Only writes of the record have more than the first. Other answers are processed
// when the request is served: a replica that has one later does nothing meanwhile, which it may do anyway.
const (
	Sent     Stage = iota // the request is in the network
	Done                  // the service has done it, and the answer is in the network
	TimedOut              // the replica has given up waiting
)

// A Request is what the service gets.
type Request struct {
	Op     Op
	ETag   uint8 // If-Match; 0: whatever it is
	ID     uint8 // of the lease
	Token  uint8
	Writer uint8
	Length uint8 // of the beats that a claim announces, 0: the writer sends none, and copies the field
}
