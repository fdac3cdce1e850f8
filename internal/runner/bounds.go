package runner

import (
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
)

// boundsOf returns the limits that a record has to keep for the store and the clock of a client.
func boundsOf(c *lease.Client) plan.Bounds {
	shortest, longest := c.Store.Limits()
	b := plan.Bounds{Shortest: shortest, Longest: longest}
	if _, latest, ok := c.Clock.Now(); ok {
		b.Latest = latest
	}
	return b
}
