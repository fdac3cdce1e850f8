package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// A Status is what the store says about one job; the root explains the fields.
type Status struct {
	Name         string
	Singleton    bool
	EveryReplica bool
	Schedule     string
	Lease        store.LeaseState
	Record       store.Record
	Checkpoint   int64
	Next         time.Time
	Foreign      bool
	Waits        time.Time
	Err          error
	Occupied     error
}

// Status reads the entry once. It changes neither the entry nor the view of the runner,
// so that any goroutine may call it.
func (r *Runner) Status(ctx context.Context) Status {
	p := &r.job.Policy
	st := Status{Name: r.job.Name, Singleton: r.Singleton()}
	if !st.Singleton {
		st.Schedule = r.job.Schedule()
	}
	if r.job.EveryReplica {
		st.EveryReplica, st.Next = true, p.Ticks.Next(r.replica.Wall())
		return st
	}
	entry, err := r.client.Read(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it is made when a scheduler starts
		st.Next = p.NextTick(&store.Record{Watermark: r.now()})
		return st
	case err != nil:
		st.Err = err
		return st
	}
	// The store can be read, whatever the record says.
	r.readable()
	st.Lease, st.Checkpoint = entry.State, entry.Checkpoint
	if st.Record, st.Err = store.DecodeRecord(entry.Record, r.replica.App, r.job.Name); st.Err == nil {
		st.Err = plan.Unusable(&st.Record, r.bounds())
		st.Next, st.Waits = p.NextTick(&st.Record), p.Waits(&st.Record, r.now())
	}
	if rec := &st.Record; st.Err == nil && rec.Definition.Spec != "" && rec.Definition.Spec != p.Spec {
		st.Foreign, st.Next = true, plan.Due(rec)
	}
	if st.Err == nil {
		st.Occupied = r.occupiedStatus(&st)
	}
	return st
}

// occupiedStatus returns that a client which claims nothing holds the lease. This replica
// may have watched it; a process that has only just started judges by how long a tick
// has been due.
func (r *Runner) occupiedStatus(st *Status) error {
	if !st.Lease.Live() || st.Record.MayRun() {
		return nil
	}
	seen := r.source.state.get().broken
	if err, ok := errors.AsType[*occupiedError](seen); ok {
		return err
	}
	if _, denied := errors.AsType[*deniedError](seen); denied { // the lease may be this replica's own
		return nil
	}
	if late := r.now().Sub(st.Next); !st.Next.IsZero() && late > r.job.Policy.OccupiedAfter(&st.Record) {
		return fmt.Errorf("leased by a client that has claimed nothing in the %s since a tick came due: if that goes on, `unlock %s` frees it", late.Round(time.Second), r.job.Name)
	}
	return nil
}
