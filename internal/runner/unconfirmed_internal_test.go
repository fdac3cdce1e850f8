package runner

import (
	"testing"

	"github.com/soloist-go/soloist/store"
)

// A read that does not show a write leaves it in doubt as long as there is a lease: the store may still apply it.
func TestLateWriteIsReportedOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		first store.LeaseState
		want  int
	}{
		"under a lease":      {store.Leased, 1},
		"after its lease":    {store.Expired, 0},
		"after its release":  {store.Available, 0},
		"under a broken one": {store.Breaking, 1},
	} {
		t.Run(name, func(t *testing.T) {
			reported := 0
			r := &Runner{}
			r.source = &source{state: &state{}}
			r.source.state.now.unconfirmed = []unconfirmed{{writer: "this", report: func() { reported++ }}}
			reads := func(state store.LeaseState, writer string) {
				r.view.entry, r.view.rec.Writer = &store.Entry{State: state}, writer
				r.reportApplied()
			}
			reads(tt.first, "")
			reads(store.Leased, "this")
			reads(store.Leased, "this")
			if reported != tt.want {
				t.Errorf("reported %d times, want %d", reported, tt.want)
			}
		})
	}
}
