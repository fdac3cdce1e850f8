package sim

import (
	"context"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// sweeps is what an operator does with locks that nobody uses: their entries go. For those who use
// them, nothing may come of that: it is no deletion that excuses anything.
const sweeps = "sweep"

func (c *Cluster) sweep(d plannedFault) {
	if c.Store != nil {
		return
	}
	r := newRoll(c.Seed, 0, sweeps, trace.TimeOfDay(d.at))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	removed, _ := soloist.Sweep(ctx, c.overHands(r, false), "sim", 10*time.Minute) // the container may be gone
	for _, name := range removed {
		c.log.Add(trace.Event{What: trace.Swept, Job: name})
	}
}
