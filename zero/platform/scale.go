package platform

import (
	"math"
	"time"
)

// app has an app scaled by a reading. While there are messages it is never scaled in: Kubernetes' autoscaler, which could,
// waits five minutes to do so, and the messages of an alarm are fewer by then.
func (p *Platform) app(r Reading) {
	now := time.Now()
	switch {
	case r.Active:
		if p.wanted == 0 {
			p.tell(Woken, nil)
		}
		p.active = now
		for p.wanted < p.many(r) {
			p.wanted++
			p.start()
		}
	case p.wanted > 0 && p.active.Add(p.CoolDown).Before(now):
		p.wanted, p.again, p.restarts.next = 0, nil, 0
		p.tell(ScaledIn, nil)
		p.stopAll()
	}
}

// job starts executions of a job by a reading: as many as there are messages for, less those that run (KEDA's default strategy).
func (p *Platform) job(r Reading) {
	p.wanted = len(p.running)
	if !r.Active {
		return
	}
	n := min(p.many(r)-len(p.running), int(math.Ceil(r.Messages)))
	if n > 0 && len(p.running) == 0 {
		p.tell(Woken, nil)
	}
	for ; n > 0; n-- {
		p.start()
	}
}

// many is how many replicas the messages are enough for.
func (p *Platform) many(r Reading) int {
	n := r.Messages
	if r.Each > 0 {
		n = math.Ceil(n / r.Each)
	}
	return int(min(max(n, 1), float64(p.Most)))
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
	if !p.Job && p.wanted > len(p.running)+len(p.again) {
		p.again = append(p.again, time.Now().Add(p.restarts.after(took)))
	}
}

// nextRestart returns a channel that gets a value when a replica is to be started again, and what releases it.
func (p *Platform) nextRestart() (<-chan time.Time, func()) {
	if len(p.again) == 0 {
		return nil, func() {}
	}
	t := time.NewTimer(time.Until(p.again[0]))
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
