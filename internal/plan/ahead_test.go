package plan

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// The tick of 00:00:20 is claimed before it is due, unless something else would be settled with it.
func TestClaimEarly(t *testing.T) {
	ordered := store.JobControl{Requests: []store.Request{{Seq: 1, Name: "please", At: midnight, Until: midnight.Add(time.Hour)}}}
	for name, tt := range map[string]struct {
		through string
		tick    string
		at      bool // claims wait for their ticks
		control store.JobControl
		want    bool
	}{
		"the next tick":        {through: "00:00:10", tick: "00:00:20", want: true},
		"claims at its tick":   {through: "00:00:10", tick: "00:00:20", at: true},
		"an older tick is due": {through: "00:00:00", tick: "00:00:20"},
		"a run is ordered":     {through: "00:00:10", tick: "00:00:20", control: ordered},
		"one would be missed":  {through: "00:00:10", tick: "00:00:30"},
		"paused":               {through: "00:00:10", tick: "00:00:20", control: store.JobControl{Pause: store.Pause{At: midnight}}},
		"it has its outcome":   {through: "00:00:20", tick: "00:00:20"},
	} {
		p := Policy{Ticks: every("10s"), ClaimAhead: !tt.at}
		r := store.Record{Watermark: clockTime(tt.through), Token: 5, Run: store.Run{Status: store.Succeeded}}
		next, ok := p.ClaimEarly(View{Record: &r, Now: clockTime("00:00:19"), Control: tt.control}, clockTime(tt.tick))
		if ok != tt.want || ok && (!next.Record.Run.Tick.Equal(clockTime(tt.tick)) || next.Record.Token != 6) {
			t.Errorf("%s: claims %t, %+v", name, ok, next.Record.Run)
		}
	}
}
