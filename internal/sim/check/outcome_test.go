package check_test

import (
	"strings"
	"testing"

	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/store"
)

// An outcome that the store does not take, while it answers reads, is given up after six
// lengths of the lease, and neither sooner nor for another reason.
func TestOutcomeThatIsNotTaken(t *testing.T) {
	for name, tt := range map[string]struct {
		until   float64 // seconds after the first try
		read    int     // the status of the reads
		cause   check.Fault
		excused bool
	}{
		"in time":                 {90, 200, "", true},
		"too soon":                {80, 200, "", false},
		"reads that fail":         {90, 503, "", false},
		"a permission is missing": {90, 200, check.ReadOnly, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			s.begin("a", "1", 10, 11, 12)
			for sent := 0.0; sent < tt.until; sent += 5 {
				s.request("a", "finish", "1", 13+sent, 0).Cause = string(tt.cause)
				s.request("a", "read", "", 13.2+sent, tt.read)
			}
			s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Token: s.last.Token, Time: at(13 + tt.until), Note: "the outcome was not confirmed"})
			excused := true
			for _, v := range check.Judge(&s.Log) {
				excused = excused && !strings.HasPrefix(v.String(), "I3 outcome")
			}
			if excused != tt.excused {
				t.Errorf("excused: %t, want %t", excused, tt.excused)
			}
		})
	}
}

// Who has tried for four lengths of its lease revives it once after it has expired. The next time it gives the outcome up.
func TestOutcomeIsGivenUpWhenLeaseLapsesTwice(t *testing.T) {
	for name, tt := range map[string]struct {
		renewed, refused float64
		excused          bool
	}{
		"after its patience":  {80, 96, true},
		"before that":         {40, 56, false},
		"before it was again": {80, 79, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			s.begin("a", "1", 10, 11, 12)
			finish := func(sent float64, status int) *check.Event {
				e := s.request("a", "finish", "1", sent, status)
				e.Record = &s.last
				return e
			}
			finish(13, 0).Cause = "503"
			s.request("a", "renew", "1", tt.renewed, 200)
			finish(tt.refused, 412).Code = "LeaseLost"
			s.add(check.Event{What: check.Said, Replica: "a", Job: "job", Token: s.last.Token, Time: at(100), Note: "the outcome was refused: a replica settles this run"})
			excused := true
			for _, v := range check.Judge(&s.Log) {
				excused = excused && !strings.HasPrefix(v.String(), "I3 outcome")
			}
			if excused != tt.excused {
				t.Errorf("excused: %t, want %t", excused, tt.excused)
			}
		})
	}
}

var _ = plant(stories{
	"I19 reason": {func(s *story) {
		// it has failed, and is told as one that had nothing to do
		s.begin("a", "1", 10, 11, 12).Note = "failed"
		s.finish("a", "1", 13, store.Skipped)
	}},
})
