package runner

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/record"
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
	v := plan.View{Record: &record.Record{Watermark: now.Truncate(time.Hour)}, Now: now, State: store.Available}
	d := driver{r, &call{}, t.Context()}
	if wait := d.tryToProve(v, plan.Wait, time.Minute); wait != time.Minute {
		t.Errorf("it waits for %s, want a minute", wait)
	}
}

// A heldStore has one entry, whose lease is held after each break of it.
type heldStore struct {
	store.Store
	record []byte
}

func (s heldStore) Read(context.Context, string) (store.Entry, error) {
	return store.Entry{Record: s.record, State: store.Leased, Revision: store.Revision{ETag: "1"}}, nil
}

func (heldStore) Break(context.Context, string, time.Duration) error { return nil }

func (heldStore) Limits() (shortest, longest time.Duration) { return time.Second, time.Hour }

// What operators ask for says nothing about who runs the ticks: a replica that counted it as a job of its own
// would leave ticks to others.
func TestOrdersLeaveLoadAlone(t *testing.T) {
	hourly, err := schedule.Parse("@hourly", "", "job")
	if err != nil {
		t.Fatal(err)
	}
	p := plan.Policy{Ticks: hourly, Lease: 15 * time.Second}
	rec := p.New("app", "job", plan.View{Now: time.Now()}, time.Time{})
	rec.Run = record.Run{Status: event.Running, Replica: "a", Tick: rec.Created, Attempt: 1, Claimed: rec.Created, Lease: record.Seconds(p.Lease)}
	b, err := rec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	replica := &Replica{App: "app", Name: "a", Store: heldStore{record: b},
		Clock: &lease.Clock{Wall: time.Now, Elapsed: func() time.Duration { return time.Since(begin) }}}
	r := New(replica, &Job{Name: "job", Policy: p})
	if err := r.Unlock(t.Context(), true); !errors.Is(err, store.ErrHeld) {
		t.Errorf("an unlock: %v, want an error that another holder was first", err)
	}
	if _, err := r.Orderable(t.Context(), record.OrderPause, ""); err != nil {
		t.Errorf("an order: %v", err)
	}
	if mine := replica.jobs.load.mine.Load(); mine != 0 {
		t.Errorf("%d jobs are counted as run here, want none", mine)
	}
}
