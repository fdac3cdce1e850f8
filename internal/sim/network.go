package sim

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A Network lies between the replicas and the one service. What it does to a
// request follows from the seed, the replica, the job, the operation and how
// many of them there were.
type Network struct {
	seed    uint64
	service service
	log     *trace.Log
	faults  []draw.NetworkFault
	calm    time.Time                                            // from then on nothing goes wrong
	direct  func(context.Context, *call) (*http.Response, error) // instead of chance; nil: nobody does

	late sync.WaitGroup // requests that are still under way though nobody waits
	mu   sync.Mutex
	met  map[trace.Fault]int
	more []draw.NetworkFault // beside faults: what was not planned
}

// ills are the faults that a request may meet by itself. Whoever is denied has
// a reason for longer.
var ills = []trace.Fault{trace.Drop, trace.DropReply, trace.Late, trace.Refuse, trace.Reset, trace.Throttle, trace.Internal, trace.Applied500, trace.Busy, trace.Slow, trace.CutOff}

// fault is what one request meets.
func (n *Network) fault(slot int, e *trace.Event, r *draw.Roll) trace.Fault {
	now := time.Now()
	calm := !now.Before(n.calm)
	n.mu.Lock()
	more := n.more
	n.mu.Unlock()
	if calm && len(more) == 0 {
		return trace.None
	}
	for _, s := range slices.Concat(n.faults, more) {
		if calm && s.From.Before(n.calm) {
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

func (n *Network) count(f trace.Fault) {
	if f == trace.None {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.met == nil {
		n.met = map[trace.Fault]int{}
	}
	n.met[f]++
}

// A service answers requests: a [blobtest.Blob], or a store in its place.
type service interface {
	Answer(*blobtest.Request) blobtest.Answer
}

// apply has the service do what the request of an event asks for.
func (n *Network) apply(e *trace.Event, r *blobtest.Request) (a blobtest.Answer) {
	n.log.Apply(e, func() (int, string) {
		a = n.service.Answer(r)
		return a.Status, a.Code
	})
	return a
}
