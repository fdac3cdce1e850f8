package sim_test

import (
	"flag"
	"os"
	"testing"

	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/judge"
)

var draws = flag.Bool("draws", false, "show the defects that are known and not mended yet")

// A shown defect is one that a draw shows, by a property.
type shown struct {
	property string
	open     bool // it is not mended yet
}

// shownBy are the defects that were known before anything drew them. Of one that is mended, nothing may be reported.
var shownBy = map[string]shown{
	"a backfill whose definition changes":         {"S5 ledger", false},
	"the history of a backfill":                   {"S8 history", false},
	"an order beside a claim":                     {"S8 obeyed", false},
	"ClaimAhead at a wake-up":                     {"L1 woken", false},
	"short calls after an unlock":                 {"P goes on", false},
	"a name that is used again":                   {"S9 orders", false},
	"a flood of orders":                           {"S8 obeyed", false},
	"an order for a paused job with an open tick": {"S8 obeyed", false},
	"a sweep beside a group":                      {"P recovered", false},
	"a pause of a predecessor at zero":            {"L1 wanted", false},
}

// TestDraws has settled clusters meet what no seed draws. With -draws it demands that each defect that is known is shown.
func TestDraws(t *testing.T) {
	for _, name := range sim.Draws() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defect := shownBy[name]
			switch {
			case defect.property == "":
				t.Fatal("nothing says what it shows")
			case defect.open && !*draws:
				t.Skip("it is known, and not mended yet")
			}
			first := max(*from, *seed)
			for s := first; s < first+4; s++ { // some take a coincidence
				said := reports(t, s, name)
				if !defect.open && len(said) > 0 {
					t.Error(said)
				}
				if defect.open && said[defect.property] > 0 {
					return
				}
			}
			if defect.open {
				t.Errorf("%s reports nothing: is it mended?", defect.property)
			}
		})
	}
}

// reports counts what is reported of a draw, by property.
func reports(t *testing.T, s uint64, name string) map[string]int {
	l := simulate(t, sim.Config{Seed: s, Draw: name})
	said := map[string]int{}
	for _, v := range judge.Judge(l) {
		t.Log(v)
		said[v.Property]++
	}
	if *seed != 0 && testing.Verbose() {
		l.Write(os.Stdout)
	}
	return said
}
