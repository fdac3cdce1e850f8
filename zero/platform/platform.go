// Package platform starts and stops replicas as Azure Container Apps does by a scale rule: it asks a scaler again and again,
// and has as many replicas as the answers say, none among them.
//
// The rules are from KEDA v2.21.0, which the service is built on: RequestScale for an app and RequestJobScale for a job
// (github.com/kedacore/keda/v2/pkg/scaling/executor), with the service's polling interval of 30 s and cool-down of 300 s
// (https://learn.microsoft.com/azure/container-apps/scale-app). What the service adds is left out: time to find a node and to
// pull the image, and that it starts few replicas before many.
package platform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// A Reading is what the scaler says at one look.
type Reading struct {
	Active   bool    // a replica is wanted
	Messages float64 // how many it counts
	Each     float64 // for so many of them one replica is enough
}

// A Scaler says whether there is work.
type Scaler interface {
	Look(ctx context.Context) (Reading, error)
}

// A Replica is a process that was started.
type Replica interface {
	// Gone is closed when it has ended.
	Gone() <-chan struct{}

	// Stop sends SIGTERM, SIGKILL if that has not ended it within patience, and returns when it is gone.
	Stop(patience time.Duration) error
}

// Rules are the settings of an app or a job. All have to be above zero.
type Rules struct {
	Job      bool          // each replica runs to its own end, and none is stopped; otherwise an app
	Polling  time.Duration // from one look to the next
	CoolDown time.Duration // of an app: from the last look that was active until it is scaled to zero
	Most     int           // replicas at the same time
	Restart  time.Duration // of an app: the pause before a replica that ends by itself is started for the second time
	Grace    time.Duration // from SIGTERM to SIGKILL
}

// An Event is a change of how many replicas the platform has.
type Event struct {
	At     time.Time
	What   string
	Wanted int // of an app; of a job so many are running
	Err    error
}

// What of events.
const (
	Woken    = "woken"     // there was no replica, and the scaler says that one is wanted
	ScaledIn = "scaled in" // to zero
	Failed   = "failed"    // the scaler, the start or the end of a replica
)

// A Platform has the replicas of one app or job.
type Platform struct {
	Rules
	Scaler Scaler
	Start  func() (Replica, error)
	Tell   func(Event) // one after the other; may be nil

	wanted   int
	active   time.Time // when the scaler was last active
	running  map[Replica]time.Time
	ended    chan Replica
	restarts backoff
	again    []time.Time // when replicas of an app are started again
}

// Run starts one replica, as a deployment does, and from then on as many as the scaler wants, until ctx ends. It returns when
// no replica is left.
func (p *Platform) Run(ctx context.Context) error {
	if p.Polling <= 0 || p.CoolDown <= 0 || p.Most < 1 || p.Restart <= 0 || p.Grace <= 0 {
		return fmt.Errorf("platform: want all of polling, cool-down, most, restart and grace above zero, got %+v", p.Rules)
	}
	p.running, p.ended, p.restarts = map[Replica]time.Time{}, make(chan Replica), backoff{first: p.Restart}
	p.wanted, p.active = 1, time.Now()
	p.start()
	look := time.NewTicker(p.Polling)
	defer look.Stop()
	for {
		restart, stop := p.nextRestart()
		select {
		case <-ctx.Done():
			stop()
			return p.end()
		case <-look.C:
			p.look(ctx)
		case r := <-p.ended:
			p.gone(r)
		case <-restart:
			p.again = p.again[1:]
			p.start()
		}
		stop()
	}
}

// look asks the scaler once. An error changes nothing, as in KEDA without a fallback.
func (p *Platform) look(ctx context.Context) {
	reading, err := p.Scaler.Look(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		p.tell(Failed, err)
	case p.Job:
		p.job(reading)
	default:
		p.app(reading)
	}
}

func (p *Platform) start() {
	r, err := p.Start()
	if err != nil {
		p.tell(Failed, err)
		return
	}
	p.running[r] = time.Now()
	go func() {
		<-r.Gone()
		p.ended <- r
	}()
}

// end stops all replicas at the same time.
func (p *Platform) end() error {
	errs := make(chan error)
	for r := range p.running {
		go func() { errs <- r.Stop(p.Grace) }()
	}
	var err error
	for n := 2 * len(p.running); n > 0; n-- { // each has an error or nil, and ends
		select {
		case one := <-errs:
			if !errors.Is(one, os.ErrProcessDone) { // it has ended by itself meanwhile
				err = errors.Join(err, one)
			}
		case <-p.ended:
		}
	}
	return err
}

func (p *Platform) tell(what string, err error) {
	if p.Tell != nil {
		p.Tell(Event{At: time.Now(), What: what, Wanted: p.wanted, Err: err})
	}
}
