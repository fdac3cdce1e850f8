package sim

import (
	"cmp"
	"slices"
	"strings"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// redate draws which edition of a calendar some jobs of a version have. The editions have one name and other days, all of them
// far away: the ticks of a seed are the same, and the definitions are not.
func redate(all []trace.Definition, r *roll) {
	edition := pick(r, "", "2050-01-01", "2050-01-02", "2051-01-01..2051-12-31")
	for i := range all {
		d := &all[i]
		switch name := cmp.Or(d.Whole, d.Name); {
		case d.Follows != "": // it has the days of the job whose ticks it has
			first, _, _ := strings.Cut(d.Follows, ", ")
			if n := slices.IndexFunc(all[:i], func(o trace.Definition) bool { return cmp.Or(o.Whole, o.Name) == first }); n >= 0 {
				d.Closed = all[n].Closed
			}
		case d.Every > 0 && slices.Contains([]string{"count", "drawn", "hourly"}, name):
			d.Closed = edition
		default:
			d.Closed = ""
		}
	}
}

// closed returns the calendar of an edition.
func closed(d *trace.Definition) []soloist.Calendar {
	if d.Closed == "" || d.Follows != "" {
		return nil
	}
	return []soloist.Calendar{dates("closed", d.Closed)}
}
