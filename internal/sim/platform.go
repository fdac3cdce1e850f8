package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// newPlatform makes the platform of a cluster.
func newPlatform(c *Cluster) *platform {
	z := c.log.Zero
	box := &world.Mailbox{Log: c.log, Whole: draw.New(c.Seed, 0, "mailbox").Chance(0.5)}
	return &platform{Cluster: c, Zero: z, box: box, taken: make([]bool, len(c.slots)), mailIlls: draw.MailFaults(c.Seed, time.Now(), c.end, len(c.slots))}
}

// live has the platform look at the queue until the cluster is over.
func (p *platform) live() {
	p.wg.Go(p.troubleMail)
	p.wg.Go(p.sleepAtTimes)
	p.wg.Go(p.netDaily)
	p.start(trace.ByDeploy)
	r := draw.New(p.Seed, 0, "polls")
	for p.pausing(r.Between(p.Poll*8/10, p.Poll)) {
		p.mu.Lock()
		asleep := time.Now().Before(p.asleep)
		p.mu.Unlock()
		if !asleep && time.Now().After(p.downUntil()) {
			p.look()
		}
	}
}

// look is one look at the queue.
func (p *platform) look() {
	n := min(len(p.box.Seen()), len(p.slots))
	switch p.Kind {
	case trace.AsJob:
		for range n - p.busy() {
			p.start(trace.ByAlarm)
		}
	case trace.AsApp:
		p.scale(n)
	case trace.AsFunctions:
		for _, m := range p.box.Take(trace.Platform, len(p.slots), p.Hold) {
			if !p.invoke(m) {
				p.box.Show(m.Id, time.Now())
			}
		}
	}
}

// scale starts replicas of an app until there is one for each message, and ends all when no message was visible for the
// cool-down.
func (p *platform) scale(n int) {
	p.mu.Lock()
	if n > 0 {
		p.seen = time.Now()
		p.wants = max(n, min(1, p.wants))
	}
	idle := n == 0 && time.Since(p.seen) >= p.CoolDown && p.wants > 0
	if idle {
		p.wants = 0
	}
	p.mu.Unlock()
	for range n - p.busy() {
		p.start(trace.ByAlarm)
	}
	if !idle {
		return
	}
	for i, s := range p.slots {
		r := s.now()
		if r != nil && !p.calm() && draw.New(p.Seed, i, "scaled in", trace.TimeOfDay(time.Now())).Chance(0.15) {
			r.Crash("scaled in")
		} else {
			s.order("restart")
		}
	}
}

func (p *platform) busy() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.taken {
		if t {
			n++
		}
	}
	return n
}

// take finds a free slot, and numbers the start; nil: there is none.
func (p *platform) take() (*slot, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.taken, false)
	if i < 0 {
		return nil, 0
	}
	p.taken[i] = true
	p.starts++
	return p.slots[i], p.starts
}

func (p *platform) free(s *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[s.index] = false
}

// start starts a replica after a random delay. If the start fails, the platform tries again at the next look.
func (p *platform) start(why string) {
	s, n := p.take()
	if s == nil {
		return
	}
	p.wg.Go(func() {
		defer p.free(s)
		for try := 1; ; try++ {
			name := fmt.Sprintf("z%d.%d", n, try)
			r := draw.New(p.Seed, 0, "start", name)
			if !p.pausing(max(r.Between(p.Start/4, p.Start), time.Until(p.downUntil()))) || !p.calm() && r.Chance(0.03) {
				return
			}
			p.occupy(s, p.begins(s, name, why, world.Mail{}))
			p.mu.Lock()
			again := p.Kind == trace.AsApp && p.wants > 0
			p.mu.Unlock()
			if !again || !p.pausing(min(5*time.Minute, 10*time.Second<<min(try, 5))) {
				return
			}
			why = trace.ByRestart
		}
	})
}

// occupy keeps a slot until its replica has ended, one way or the other.
func (p *platform) occupy(s *slot, r *replica) {
	s.mu.Lock()
	s.current = r
	s.mu.Unlock()
	select {
	case <-r.Dead:
	case <-r.done:
	case <-s.orders:
		r.stop()
	case <-s.over:
		r.stop()
	}
	s.mu.Lock()
	s.current = nil
	s.mu.Unlock()
}

// invoke runs a function for a message, and deletes that when it has succeeded. What fails is repeated, and what fails
// five times is put aside. It returns false if there is no room.
func (p *platform) invoke(m world.Mail) bool {
	s, n := p.take()
	if s == nil {
		return false
	}
	p.wg.Go(func() {
		defer p.free(s)
		name := fmt.Sprintf("z%d.1", n)
		if !p.pausing(draw.New(p.Seed, 0, "start", name).Between(p.Start/4, p.Start)) {
			return
		}
		r := p.begins(s, name, trace.ByAlarm, m)
		stop := make(chan struct{})
		p.wg.Go(func() { p.hold(m.Id, stop) })
		p.occupy(s, r)
		close(stop)
		switch {
		case r.Gone(): // the message is visible again when the time has passed for which it is hidden
		case r.served:
			p.box.Drop(trace.Platform, m.Id, m.Pop())
		case m.Pops >= mostPops && !p.calm():
			p.box.Lose(m.Id)
		default:
			p.box.Show(m.Id, time.Now())
		}
	})
	return true
}

// mostPops is how often the host of functions tries a message.
const mostPops = 5

// hold keeps a message hidden while its function runs.
func (p *platform) hold(id string, stop chan struct{}) {
	for {
		select {
		case <-time.After(p.Hold / 2):
			p.box.Hold(id, p.Hold)
		case <-stop:
			return
		}
	}
}

// netDaily starts a replica each day, and once when all faults are over.
func (p *platform) netDaily() {
	r, healed := draw.New(p.Seed, 0, "net"), p.healed
	first := r.Between(0, p.Net)
	for wait := first; ; wait = p.Net {
		select {
		case <-time.After(wait):
		case <-healed:
			healed = nil
			time.Sleep(time.Second)
		case <-p.over:
			return
		}
		p.mu.Lock()
		if p.Kind == trace.AsApp { // a rule of the clock keeps one up for a while
			p.wants, p.seen = max(1, p.wants), time.Now()
		}
		p.mu.Unlock()
		p.start(trace.ByNet)
	}
}

// sleepAtTimes has the platform do nothing for minutes, now and then.
func (p *platform) sleepAtTimes() {
	r := draw.New(p.Seed, 0, "platform asleep")
	for r.Chance(0.9) && p.idle(r.Around(3*time.Hour)) {
		d := min(r.Around(8*time.Minute), time.Until(p.end))
		p.mu.Lock()
		p.asleep = time.Now().Add(d)
		p.mu.Unlock()
	}
}

// deployed starts a replica of the new version, as a platform does to see that it comes up; or, where it does not, somebody
// wakes the new version up.
func (p *platform) deployed() {
	if p.Kind != trace.AsApp && draw.New(p.Seed, 0, "woken", trace.TimeOfDay(time.Now())).Chance(0.6) {
		p.wake()
		return
	}
	for _, s := range p.slots {
		s.order("restart")
	}
	if r := draw.New(p.Seed, 0, "deployed", trace.TimeOfDay(time.Now())); !r.Chance(0.1) {
		p.pausing(r.Between(0, 20*time.Second))
		p.start(trace.ByDeploy)
	}
}

// wake puts a message for the version that was deployed, until that succeeds. Replicas of the version before go on.
func (p *platform) wake() {
	_, version := p.program()
	m := world.NewMachine(trace.Orderer+" "+trace.TimeOfDay(time.Now()), -1, world.NewClock(0, 0), p.log, &world.Traps{})
	c := p.clock(&soloist.Scheduler{}, m, version)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := c.Wake(ctx)
		cancel()
		if err == nil || !p.pausing(30*time.Second) {
			return
		}
	}
}

// pausing waits; it returns false when the cluster is over.
func (p *platform) pausing(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-p.over:
		return false
	}
}
