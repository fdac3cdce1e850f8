package sim_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/judge"
)

var draws = flag.Bool("draws", false, "have clusters meet what no seed draws yet")

// shownBy names the property that reports the defect that a draw shows. It is empty once that is mended: then nothing may be
// reported, and the draw becomes one of the seeds.
var shownBy = map[string]string{
	"a backfill whose definition changes":         "S5 backfilled",
	"the history of a backfill":                   "S8 history",
	"an order beside a claim":                     "S8 obeyed",
	"ClaimAhead at a wake-up":                     "L1 woken",
	"short calls after an unlock":                 "L1 called",
	"a name that is used again":                   "S9 name",
	"a flood of orders":                           "S8 obeyed",
	"an order for a paused job with an open tick": "S8 obeyed",
	"a sweep beside a group":                      "L1 swept",
	"a pause of a predecessor at zero":            "L1 wanted",
}

// TestDraws shows that each defect that is known would have been seen by a property, had it been drawn.
func TestDraws(t *testing.T) {
	if !*draws {
		t.Skip("run it with -draws")
	}
	for _, name := range sim.Draws() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := simulate(t, sim.Config{Seed: max(*from, *seed), Draw: name})
			said := false
			for _, v := range append(judge.Judge(l), judge.Drawn(l)...) {
				said = said || v.Invariant == shownBy[name]
				if t.Log(v); shownBy[name] == "" {
					t.Fail()
				}
			}
			if !said && shownBy[name] != "" {
				t.Errorf("%s reports nothing", shownBy[name])
			}
			if *seed != 0 && testing.Verbose() {
				var b strings.Builder
				l.Write(&b)
				os.Stdout.WriteString(b.String())
			}
		})
	}
}
