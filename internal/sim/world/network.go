package world

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// Add has the network meet a fault from now on.
func (n *Network) Add(f draw.NetworkFault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.more = append(n.more, f)
}

// A Network lies between the replicas and the one service. What it does to a
// request follows from the seed, the replica, the job, the operation and how
// many of them there were.
type Network struct {
	Seed    uint64
	Service Service
	Log     *trace.Log
	Faults  []draw.NetworkFault
	Calm    time.Time                                            // from then on nothing goes wrong
	Direct  func(context.Context, *Call) (*http.Response, error) // instead of chance; nil: chance decides

	Late sync.WaitGroup // requests that are still under way though no caller waits
	mu   sync.Mutex
	more []draw.NetworkFault // in addition to Faults: what was not planned
}

// ills are the faults that a single request may meet. A denial is not among them, since its cause lasts longer.
var ills = []trace.Fault{trace.Drop, trace.DropReply, trace.Late, trace.Refuse, trace.Reset, trace.Throttle, trace.Internal, trace.Applied500, trace.Busy, trace.Slow, trace.CutOff}

// calm reports whether all is over that was planned, and returns what was not.
func (n *Network) calm() (bool, []draw.NetworkFault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !time.Now().Before(n.Calm), n.more
}

// latency is how long a request and its answer take. Once all faults are over, none of them is slow: to a lease of a second that
// would be a fault.
func (n *Network) latency(r *draw.Roll) (there, back time.Duration) {
	there, back = r.Latency(), r.Latency()
	if calm, more := n.calm(); calm && len(more) == 0 {
		there, back = min(there, draw.Usual), min(back, draw.Usual)
	}
	return there, back
}

// fault is what one request meets.
func (n *Network) fault(slot int, e *trace.Event, r *draw.Roll) trace.Fault {
	calm, more := n.calm()
	if calm && len(more) == 0 {
		return trace.None
	}
	now := time.Now()
	for _, s := range slices.Concat(n.Faults, more) {
		if calm && s.From.Before(n.Calm) {
			continue // what was to come before
		}
		if !now.Before(s.From) && now.Before(s.To) && s.Hits(slot, e) && r.Chance(s.Share) {
			if s.Fault != trace.None {
				return s.Fault
			}
			return ills[r.Below(len(ills))]
		}
	}
	return trace.None
}

// Apply has the service do what the request of an event asks for.
func (n *Network) Apply(e *trace.Event, r *blobtest.Request) (a blobtest.Answer) {
	n.Log.Apply(e, func() (int, string) {
		a = n.Service.Answer(r)
		return a.Status, a.Code
	})
	return a
}

// later applies a call when no caller waits for it any more.
func (n *Network) later(d time.Duration, apply func()) {
	n.Late.Go(func() {
		time.Sleep(d)
		if time.Now().Before(n.Calm) {
			apply()
		}
	})
}

// Container is that of all entries.
const Container = "soloist"

// A Sender takes a request to the service and its answer back.
type Sender func(context.Context, *blobtest.Request) (Reply, error)

// Parts of a request.
const (
	LeaseID   = "x-ms-lease-id"
	IfMatch   = "if-match"
	NoneMatch = "if-none-match"
	MetaKey   = "x-ms-meta-record"
	BlobType  = "x-ms-blob-type"
	BlockBlob = "BlockBlob"
)

// A Reply is an answer as it comes back.
type Reply struct {
	blobtest.Answer
	cutOff bool           // its body, if it has one, cannot be read to its end
	raw    *http.Response // what a script has made of it; nil: nothing
}

// failed is how net/http reports a failure.
func failed(r *http.Request, err error) error {
	return &url.Error{Op: r.Method, URL: r.URL.String(), Err: err}
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
