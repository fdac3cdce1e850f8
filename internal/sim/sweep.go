package sim

import (
	"context"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

func (c *Cluster) sweep(d draw.PlannedFault) {
	if c.Store != nil {
		return
	}
	r := draw.New(c.Seed, 0, draw.Sweeps, trace.TimeOfDay(d.At))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	removed, _ := soloist.Sweep(ctx, c.overHands(r, false), "sim", 10*time.Minute) // the container may be gone
	for _, name := range removed {
		c.log.Add(trace.Event{What: trace.Swept, Job: name})
	}
}
