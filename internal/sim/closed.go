package sim

import (
	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// closed returns the calendar of an edition.
func closed(d *trace.Definition) []soloist.Calendar {
	if d.Closed == "" || d.Follows != "" {
		return nil
	}
	return []soloist.Calendar{dates("closed", d.Closed)}
}
