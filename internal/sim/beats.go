package sim

import (
	"cmp"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
)

// leaseOf is the lease that a program asks for. A store of [Config] takes what the definition says.
func (c *Cluster) leaseOf(d *trace.Definition) time.Duration {
	if c.Store != nil {
		return d.Lease
	}
	return cmp.Or(d.Beat, d.Lease)
}
