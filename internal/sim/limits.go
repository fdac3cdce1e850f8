package sim

import (
	"strings"
	"sync"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// limits gives a job what limits its ticks.
func limits(j *soloist.Job, d *trace.Definition) {
	if d.Follows != "" { // it has the ticks of another job
		return
	}
	l := &d.Limits
	j.From, j.Until, j.Shift = l.From, l.Until, l.Shift
	if l.Except != "" {
		j.Except = append(j.Except, dates("except", l.Except))
	}
	if l.Only != "" {
		j.Only = append(j.Only, dates("only", l.Only))
	}
}

// dates is a calendar of days. It is the same one each time: a program asks a new calendar for each day of a century.
func dates(name, days string) soloist.Calendar {
	c, ok := calendars.Load(name + " " + days)
	if !ok {
		c, _ = calendars.LoadOrStore(name+" "+days, calendar.Dates(name, strings.Fields(days)...))
	}
	return c.(soloist.Calendar)
}

var calendars sync.Map
