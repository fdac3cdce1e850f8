package beatmodel

import (
	"fmt"
	"testing"
)

// The program as it is to be.
func TestTwoNeverAct(t *testing.T) {
	for _, m := range []Model{
		{Beats: []uint8{2, 2}, Lease: 3},
		{Beats: []uint8{2, 1}, Lease: 3},
		{Beats: []uint8{2, 0}, Lease: 3},
		{Beats: []uint8{1, 1}, Lease: 2, Breaks: true},
		{Beats: []uint8{1, 1}, Lease: 2, Late: true, Finish: true},
		{Beats: []uint8{1, 1}, Lease: 2, Finish: true, Breaks: true, Crashes: true},
	} {
		t.Run(fmt.Sprintf("%+v", m), func(t *testing.T) {
			t.Parallel()
			r := m.Explore()
			t.Logf("%d states", r.States)
			if r.Wrong != "" {
				t.Error(r.Wrong)
				r.print(t)
			}
		})
	}
}

func (r Result) print(t *testing.T) {
	for _, step := range r.Steps {
		t.Logf("replica %d: %s %s", step.Who+1, ops[step.Op], step.What)
	}
}

var ops = [...]string{"", "read", "break", "acquisition", "claim", "beat", "outcome", "release", "renewal"}

// Each rule has its reason: without it there is a way to two replicas that act at once, or to a write that hits
// what it must not. With -v its steps are printed.
func TestEachMistakeIsFound(t *testing.T) {
	tried := map[Mistake]bool{}
	short, long, mixed := []uint8{1, 1}, []uint8{2, 2}, []uint8{1, 0}
	for name, m := range map[string]Model{
		"a break and a claim with whatever ETag there is":    {Mistake: BreaksAnyETag, Beats: short, Lease: 2},
		"a claim with an ETag that was read again":           {Mistake: ClaimsRereadETag, Beats: short, Lease: 2, Breaks: true},
		"an observation from the sending of a read":          {Mistake: ObservesFromSending, Beats: short, Lease: 2},
		"an observation that goes on under another ETag":     {Mistake: ObservesOnThoughWritten, Beats: short, Lease: 2},
		"an observation of a holder without beats":           {Mistake: ObservesWithoutBeats, Beats: mixed, Lease: 2, Breaks: true},
		"an observation for the follower's L":                {Mistake: ObservesOwnLength, Beats: []uint8{2, 1}, Lease: 3},
		"an observation by a fast clock":                     {Mistake: ObservesTooShort, Beats: short, Lease: 2},
		"trust from the receipt of an answer":                {Mistake: TrustsFromReceipt, Beats: short, Lease: 2},
		"trust by a slow clock":                              {Mistake: TrustsTooLong, Beats: short, Lease: 2},
		"trust by renewals alone":                            {Mistake: TrustsRenewals, Beats: short, Lease: 2},
		"trust by beats alone":                               {Mistake: TrustsBeatsAlone, Beats: long, Lease: 3},
		"trust by a beat that was refused":                   {Mistake: TrustsRefusal, Beats: long, Lease: 3, Breaks: true},
		"trust from the second sending of a write":           {Mistake: TrustsSecondSending, Beats: short, Lease: 2, Late: true},
		"trust from a read-back":                             {Mistake: TrustsReadBack, Beats: short, Lease: 2},
		"trust that a late answer revives":                   {Mistake: TrustsLateAnswer, Beats: long, Lease: 3, Breaks: true},
		"no hold-off after an operator's break":              {Mistake: NoHoldOffAfterBreak, Beats: short, Lease: 2, Breaks: true},
		"a beat without If-Match":                            {Mistake: BeatsAnyETag, Beats: short, Lease: 2, Late: true, Finish: true},
		"a beat field that counts for whoever has copied it": {Mistake: BareBeat, Beats: mixed, Lease: 2},
	} {
		tried[m.Mistake] = true
		t.Run(name, func(t *testing.T) {
			r := m.Explore()
			if r.Wrong == "" {
				t.Fatalf("%d states, none of them wrong", r.States)
			}
			t.Logf("%s, after %d states:", r.Wrong, r.States)
			r.print(t)
		})
	}
	for x := NoMistake + 1; x <= BareBeat; x++ {
		if !tried[x] {
			t.Errorf("mistake %d is not tried", x)
		}
	}
}
