package control

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// reserved is what runs and backfills leave free of the document, so that one which is full of them still takes a pause, a resume
// and the end of a run.
const reserved = store.MaxDocument / 8

// encode returns the document, to which an order was added, as JSON. If it is full, requests and pauses that are over are dropped,
// also those of other jobs: a job for which nothing is ordered any more drops none.
func (c *Client) encode(ctx context.Context, doc *record.Control, o *record.Order) ([]byte, error) {
	most := store.MaxDocument
	if o.Kind == record.OrderRun || o.Kind == record.OrderBackfill {
		most -= reserved
	}
	b, err := doc.Encode()
	for name, j := range doc.Jobs {
		if err == nil && len(b) <= most {
			break
		}
		if c.dropOver(ctx, name, &j, o.At) {
			doc.Jobs[name] = j
			b, err = doc.Encode()
		}
	}
	if err == nil && len(b) > most {
		err = errors.New("the orders are full of runs and pauses that no replica has settled, or of names of runs that are kept for a day: " +
			"start a replica of each job, or order this later")
	}
	return b, err
}

// dropOver drops the requests and pauses of a job that are over, by its record, and reports whether there were any. If the record
// cannot be read, all are kept.
func (c *Client) dropOver(ctx context.Context, job string, j *record.JobControl, now time.Time) bool {
	if len(j.Pauses) == 0 && !slices.ContainsFunc(j.Requests, func(q record.Request) bool { return isOld(&q, now) }) {
		return false
	}
	r, err := c.recordOf(ctx, job)
	if err != nil {
		return false
	}
	before := len(j.Requests) + len(j.Pauses)
	j.Requests = slices.DeleteFunc(slices.Clone(j.Requests), func(q record.Request) bool {
		return r.Orders.IsServed(q.Seq) && isOld(&q, now)
	})
	j.Pauses = unsettled(j.Pauses, &r, now)
	return len(j.Requests)+len(j.Pauses) < before
}

// recordOf returns the record of a job. The requests for an entry that was deleted are over.
func (c *Client) recordOf(ctx context.Context, job string) (record.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	entry, err := c.Entries.Read(ctx, c.App+"/"+job)
	if errors.Is(err, fs.ErrNotExist) {
		return record.Record{Orders: record.Orders{Served: record.MaxToken}}, nil
	} else if err != nil {
		return record.Record{}, err
	}
	return record.Decode(entry.Record, c.App, job)
}
