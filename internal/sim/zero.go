package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// Kinds of trouble that the queue of alarms makes.
const (
	losesMail   = "loses a message"
	delaysMail  = "shows a message late"
	repeatsMail = "shows a message again"
	garbageMail = "has garbage"
	othersMail  = "has a message of another app"
	floodMail   = "has many stale messages"
)

// troubleMail has the queue make trouble until the faults end.
func (p *platform) troubleMail() {
	r := draw.New(p.Seed, 0, "trouble of mail")
	if r.Chance(0.15) {
		return
	}
	defer p.dropOthers()
	for p.idle(r.Around(40 * time.Minute)) {
		m, ok := p.box.Any(r)
		what := draw.Pick(r, losesMail, losesMail, delaysMail, delaysMail, repeatsMail, repeatsMail, garbageMail, othersMail, floodMail)
		late := r.Around(10 * time.Minute)
		switch {
		case what == garbageMail:
			p.box.Put(trace.Platform, []byte(draw.Pick(r, "", "hello", "{", "null", "\xff\xfe", `{"schema":99,"app":"sim"}`)), 0)
		case what == othersMail:
			p.others = append(p.others, p.box.Put(trace.Platform, p.letter("other", late), 0).Id)
		case what == floodMail:
			for range 1 + r.Below(150) {
				p.box.Put(trace.Platform, p.letter("sim", -late), 0)
			}
		case !ok:
		case what == losesMail:
			p.box.Lose(m.Id)
		case what == delaysMail && m.Visible.After(time.Now()):
			p.box.Show(m.Id, m.Visible.Add(late))
		case what == repeatsMail:
			again := p.box.Put(trace.Platform, m.Body, max(0, time.Until(m.Visible)+late))
			if slices.Contains(p.others, m.Id) {
				p.others = append(p.others, again.Id)
			}
		}
	}
}

// dropOthers has an operator delete the messages of another app, as the log of each replica asks for: they keep the platform
// starting replicas.
func (p *platform) dropOthers() {
	for _, id := range p.others {
		p.box.Lose(id)
	}
}

// letter is the body of an alarm.
func (p *platform) letter(app string, in time.Duration) []byte {
	at := time.Now().Add(in).UTC()
	b, err := json.Marshal(map[string]any{"schema": 1, "app": app, "id": "stale", "at": at, "tick": at})
	if err != nil {
		panic(err)
	}
	return b
}

// planAtZero is the plan of a cluster that scales to zero. It has no aborted deploys, since no replica would be up to take a
// job back, and it has faults in calls to the queue.
func (c *Cluster) planAtZero(all []draw.PlannedFault, start time.Time) []draw.PlannedFault {
	if c.platform == nil {
		return all
	}
	all = slices.DeleteFunc(all, func(d draw.PlannedFault) bool { return d.What == draw.AbortDeploy || d.What == draw.WakeCold })
	return append(all, draw.MailTraps(c.Seed, start, c.end)...)
}

// clock is the alarm of a replica of a version, or of an operator.
func (p *platform) clock(s *soloist.Scheduler, m *world.Machine, version int) *alarm.Clock {
	l := &world.Line{Network: p.net, Machine: m}
	return &alarm.Clock{App: "sim", Queue: &world.MailLine{Line: l, Box: p.box, Ills: p.mailIlls}, Notes: p.whole(l), Lead: p.Lead, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return m.Now().Add(-s.Health().Skew) }, Work: fmt.Sprint("version ", version), Started: time.Now()}
}

// ring has an operator, or the caller of a manual run, wake up a cluster that scales to zero. It ends when ctx ends.
func (c *Cluster) ring(ctx context.Context, job string) {
	if c.platform == nil {
		return
	}
	m := world.NewMachine(trace.Orderer+" "+trace.TimeOfDay(time.Now()), -1, world.NewClock(0, 0), c.log, &world.Traps{})
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_ = c.platform.clock(&soloist.Scheduler{}, m, 0).Ring(ctx)
}
