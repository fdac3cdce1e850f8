package scenarios_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// An outage comes in the first half of a run and goes.
type outage struct {
	fault  network
	share  float64 // of the requests that it strikes
	way    string  // the connection string; empty: byKey
	length time.Duration
	all    bool    // replicas; else the one that runs alone
	mean   float64 // requests that a replica may send in a second of a long outage; zero: half a one

	// tell looks at a replica that is hit, at the end of a long outage; nil: nothing does.
	tell func(w *world, name string)
}

// long is a job whose runs span many renewals, and of which another replica
// takes over at once what it can.
var long = job{every: time.Minute, takes: 40 * time.Second, interrupted: soloist.Rerun}

func (o outage) in(w *world) {
	if o.way != "" {
		w.azure = by(o.way)
	}
	w.start("a", "b")
	run := w.running()
	time.Sleep(w.upTo(long.takes / 2))
	begin := time.Now()
	if f := w.sometimes(o.share, o.fault); o.all {
		w.meet(f)
	} else {
		w.meet(f, run.Replica)
	}
	time.Sleep(o.length)
	for name := range w.replicas {
		if (o.all || name == run.Replica) && o.tell != nil && o.length > D {
			o.tell(w, name)
		}
	}
	over := time.Now()
	w.meet(nil)
	w.wellAfter(over)
	switch lost := w.lost(run); {
	case !lost && o.share == 1 && o.length > D:
		w.Error("the run kept its lease")
	case lost && (o.share < 0.1 || o.length < D/2):
		w.Error("the run was lost for nothing")
	}
	bound := perSecond
	if o.share < 1 {
		bound = perSecondAtBest
	}
	w.bounded(bound, begin, over)
	for name := range w.replicas { // in the long run pauses have grown
		if n := len(w.sent(name, begin, over)); o.share == 1 && n > 40+int(cmp.Or(o.mean, 0.5)*o.length.Seconds()) {
			w.Errorf("%s sent %d requests in %s", name, n, o.length)
		}
	}
}

// What a replica with one job may send within a second to a service that
// refuses everything, and to one of which an answer now and then starts its
// pauses anew.
const perSecond, perSecondAtBest = 8, 12

// each runs an outage of several lengths, of the replica that runs and of all.
func each(t *testing.T, name string, o outage, lengths ...time.Duration) {
	for _, length := range fewer(t, lengths...) {
		for whose, all := range map[string]bool{"the holder": false, "all": true} {
			o := o
			o.length, o.all = length, all
			beside(t, fmt.Sprintf("%s, %s, of %s", name, length, whose), long, o.in)
		}
	}
}

func TestOutages(t *testing.T) {
	for name, f := range map[string]network{
		"500":                        refuse(500, "InternalError"),
		"502":                        refuse(502, ""),
		"503":                        refuse(503, "ServerBusy"),
		"refused":                    refused,
		"reset":                      reset,
		"reset after it was applied": dropped,
		"no name":                    noName,
	} {
		for _, share := range []float64{0.05, 0.5, 1} {
			o := outage{fault: f, share: share, way: bySignature, tell: func(w *world, name string) {
				if h := w.replicas[name].Health(); h.Storage == nil && share == 1 {
					w.Errorf("%s: health tells nothing: %+v", name, h)
				}
			}}
			each(t, fmt.Sprintf("%s, %g%%", name, 100*share), o,
				time.Minute, time.Second, 5*time.Second, 10*time.Minute)
		}
	}
}

// A service that throttles asks for a pause. A renewal has no time for one that
// is longer than its lease: that it is tried again soon, and not too often, is
// checked at the end of each world.
func TestThrottling(t *testing.T) {
	for _, status := range []int{429, 503} {
		for _, told := range []string{
			"Retry-After: 1", "Retry-After: 50", "Retry-After: 300", // as documented
			"retry-after-ms: 50000", "x-ms-retry-after-ms: 50000", // as the client library knows it too
		} {
			o := outage{fault: refuse(status, "ServerBusy", told), share: 1}
			each(t, fmt.Sprintf("%d, %s", status, told), o, time.Minute, 6*time.Second, 10*time.Minute)
		}
	}
}

// Connections that were not closed and do not work. That each call is bounded,
// and each run ends in time, is checked at the end of each world.
func TestHalfOpenConnections(t *testing.T) {
	for name, f := range map[string]network{
		"nothing gets through":      hang,
		"nothing comes back":        mute,
		"replies without an end":    garble(deliver, endless),
		"replies a byte a second":   garble(deliver, trickle),
		"replies that are cut off":  garble(deliver, cutOff),
		"refusals without an end":   garble(refuse(503, "ServerBusy"), endless),
		"refusals a byte a second":  garble(refuse(503, "ServerBusy"), trickle),
		"refusals that are cut off": garble(refuse(503, "ServerBusy"), cutOff),
	} {
		o := outage{fault: f, share: 1}
		if name == "replies that are cut off" {
			o.mean = 1 // a read has no body, so it gets through
		}
		each(t, name, o, time.Minute, 4*time.Second, 10*time.Minute)
	}
}
