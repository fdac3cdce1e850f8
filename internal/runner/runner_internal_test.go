package runner

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/schedule"
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

// A replica that has decided to read the entry again has none, and there is nothing to write: a
// read that falls due between the look at the entry and the decision used to end the process.
func TestReplicaWithoutEntryProvesNothing(t *testing.T) {
	hourly, err := schedule.Parse("@hourly", "", "job")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 21, 10, 10, 0, 0, time.UTC)
	r := &Runner{}
	r.job = &Job{Policy: plan.Policy{Ticks: hourly, Lease: 15 * time.Second}}
	r.denial.unproved = true
	v := plan.View{Record: &store.Record{Watermark: now.Truncate(time.Hour)}, Now: now, State: store.Available}
	d := driver{r, &call{}, t.Context()}
	if wait := d.tryToProve(v, plan.Wait, time.Minute); wait != time.Minute {
		t.Errorf("it waits for %s, want a minute", wait)
	}
}
