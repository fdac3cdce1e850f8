package plan

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// FinishSeveral is Finish for a claim of several ticks, all of whose runs have returned.
func (p *Policy) FinishSeveral(r *store.Record, all []Ended, end time.Time) store.Record {
	f := r.Clone()
	f.Run.Finished, f.Run.Stopping = end, false
	if f.Run.Status != store.Stalled {
		worst := worst(all)
		if f.Run.Status = worst.Status; HasFailed(&f) {
			f.Run.Error = worst.Reason
		}
	}
	p.End(&f, all...)
	f.Due = p.due(&f)
	return f
}

// worst returns the end that the record shows for the run: of a stall, or else of the first that has not succeeded.
func worst(all []Ended) Ended {
	last := Ended{Status: store.Succeeded}
	for _, e := range slices.Backward(all) {
		if e.Status != "" && e.Status != store.Succeeded && (last.Status != store.Stalled || e.Status == store.Stalled) {
			last = e
		}
	}
	return last
}

// StallSeveral is Stall for one of several ticks. The runs of the others go on as long as the lease is trusted.
func (p *Policy) StallSeveral(r *store.Record, e Ended) store.Record {
	f := r.Clone()
	f.Run.Status, f.Run.Error, f.Run.Stopping = store.Stalled, e.Reason, true
	p.End(&f, e)
	f.Due = p.due(&f)
	return f
}
