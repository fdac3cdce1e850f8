package sim

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// clock is the alarm of a replica of a version, or of an operator.
func (p *platform) clock(s *soloist.Scheduler, m *world.Machine, version int) *alarm.Clock {
	l := &world.Line{Network: p.net, Machine: m}
	return &alarm.Clock{App: "sim", Queue: &world.MailLine{Line: l, Box: p.box, Ills: p.mailIlls}, Notes: p.whole(l), Lead: p.Lead, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return m.Now().Add(-s.Health().Skew) }, Work: fmt.Sprint("version ", version), Started: time.Now()}
}

// ring has an operator, or who asks for a run by hand, wake a cluster up that scales to zero. The end of ctx ends that.
func (c *Cluster) ring(ctx context.Context, job string) {
	if c.platform == nil {
		return
	}
	m := world.NewMachine(trace.Orderer+" "+trace.TimeOfDay(time.Now()), -1, world.NewClock(0, 0), c.log, &world.Traps{})
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_ = c.platform.clock(&soloist.Scheduler{}, m, 0).Ring(ctx)
}
