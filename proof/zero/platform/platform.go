// Package platform starts and stops a replica as Azure Container Apps does by a scale rule with one replica at most: it asks a
// scaler again and again, and has one or none as the answers say.
//
// The rules are from KEDA v2.21.0, which the service is built on: RequestScale for an app and RequestJobScale for a job
// (github.com/kedacore/keda/v2/pkg/scaling/executor), with the service's polling interval of 30 s and cool-down of 300 s
// (https://learn.microsoft.com/azure/container-apps/scale-app). What the service adds is left out: time to find a node and to
// pull the image.
package platform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// A Scaler says whether there is work.
type Scaler interface {
	Look(ctx context.Context) (active bool, err error)
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
	Restart  time.Duration // of an app: the pause before a replica that ends by itself is started for the second time
	Grace    time.Duration // from SIGTERM to SIGKILL
}

// An Event is a change of whether the platform has a replica.
type Event struct {
	At   time.Time
	What string
	Err  error
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

	wanted   bool                  // a replica of an app
	active   time.Time             // when the scaler was last active
	running  map[Replica]time.Time // two, while one is stopped and the next has started
	ended    chan Replica
	restarts backoff
	again    time.Time // when a replica of an app is started again; zero: none is
}

// Run starts a replica, as a deployment does, and from then on whenever the scaler wants one, until ctx ends. It returns when
// no replica is left.
func (p *Platform) Run(ctx context.Context) error {
	if p.Polling <= 0 || p.CoolDown <= 0 || p.Restart <= 0 || p.Grace <= 0 {
		return fmt.Errorf("platform: want all of polling, cool-down, restart and grace above zero, got %+v", p.Rules)
	}
	p.running, p.ended, p.restarts = map[Replica]time.Time{}, make(chan Replica), backoff{first: p.Restart}
	p.wanted, p.active = true, time.Now()
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
			p.again = time.Time{}
			p.start()
		}
		stop()
	}
}

// look asks the scaler once. An error changes nothing, as in KEDA without a fallback.
func (p *Platform) look(ctx context.Context) {
	active, err := p.Scaler.Look(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		p.tell(Failed, err)
	case p.Job:
		if active && len(p.running) == 0 {
			p.tell(Woken, nil)
			p.start()
		}
	default:
		p.app(active)
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
		p.Tell(Event{At: time.Now(), What: what, Err: err})
	}
}

// app has an app scaled by a look.
func (p *Platform) app(active bool) {
	now := time.Now()
	switch {
	case active:
		if p.active = now; !p.wanted {
			p.wanted = true
			p.tell(Woken, nil)
			p.start()
		}
	case p.wanted && p.active.Add(p.CoolDown).Before(now):
		p.wanted, p.again, p.restarts.next = false, time.Time{}, 0
		p.tell(ScaledIn, nil)
		p.stopAll()
	}
}

// stopAll stops the replicas and does not wait for them: a look may be due before they have ended.
func (p *Platform) stopAll() {
	for r := range p.running {
		go r.Stop(p.Grace) // its end reports whether it was killed or failed
	}
}

// gone has a replica that has ended by itself started again, as Kubernetes does with each container of an app, whatever its
// exit code is.
func (p *Platform) gone(r Replica) {
	took := time.Since(p.running[r])
	delete(p.running, r)
	if !p.Job && p.wanted && len(p.running) == 0 {
		p.again = time.Now().Add(p.restarts.after(took))
	}
}

// nextRestart returns a channel that gets a value when a replica is to be started again, and what releases it.
func (p *Platform) nextRestart() (<-chan time.Time, func()) {
	if p.again.IsZero() {
		return nil, func() {}
	}
	t := time.NewTimer(time.Until(p.again))
	return t.C, func() { t.Stop() }
}

// A backoff is the pause before a container is started again: none, then 10 s, doubled up to 300 s, and none again after it
// has run for ten minutes (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy).
type backoff struct{ first, next time.Duration }

func (b *backoff) after(took time.Duration) time.Duration {
	if took >= 60*b.first {
		b.next = 0
	}
	pause := b.next
	b.next = min(max(b.first, 2*b.next), 30*b.first)
	return pause
}
