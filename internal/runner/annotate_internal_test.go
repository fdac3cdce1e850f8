package runner

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/schedule"
	"github.com/soloist-go/soloist/store"
)

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
	if wait := r.tryToProve(t.Context(), v, plan.Wait, time.Minute); wait != time.Minute {
		t.Errorf("it waits for %s, want a minute", wait)
	}
}
