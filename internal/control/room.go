package control

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// reserved is what runs and backfills leave free of the document, so that one which is full of them still takes a pause, a resume
// and the end of a run.
const reserved = store.MaxDocument / 8

// encode returns the document, to which an order was added, as JSON. If it is full, requests that are over are dropped, also those
// of other jobs: a job whose runs are not ordered any more drops none.
func (c *Client) encode(ctx context.Context, doc *store.Control, o *store.Order) ([]byte, error) {
	most := store.MaxDocument
	if o.Kind == store.OrderRun || o.Kind == store.OrderBackfill {
		most -= reserved
	}
	b, err := doc.Encode()
	for name, j := range doc.Jobs {
		if err == nil && len(b) <= most {
			break
		}
		if left := c.dropOver(ctx, name, j.Requests, o.At); len(left) < len(j.Requests) {
			j.Requests = left
			doc.Jobs[name] = j
			b, err = doc.Encode()
		}
	}
	if err == nil && len(b) > most {
		err = errors.New("the orders are full of runs that no replica has settled, or whose names are kept for a day: start a replica of each job, or order this later")
	}
	return b, err
}

// dropOver returns the requests of a job without those that are over, by its record. If that cannot be read, all are kept.
func (c *Client) dropOver(ctx context.Context, job string, all []store.Request, now time.Time) []store.Request {
	if !slices.ContainsFunc(all, func(q store.Request) bool { return isOld(&q, now) }) {
		return all
	}
	orders, err := c.ordersOf(ctx, job)
	if err != nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(q store.Request) bool { return orders.IsServed(q.Seq) && isOld(&q, now) })
}

// ordersOf returns what the record of a job says of its orders. Those for an entry that was deleted are over.
func (c *Client) ordersOf(ctx context.Context, job string) (store.Orders, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	entry, err := c.Entries.Read(ctx, c.App+"/"+job)
	if errors.Is(err, fs.ErrNotExist) {
		return store.Orders{Served: store.MaxToken}, nil
	} else if err != nil {
		return store.Orders{}, err
	}
	r, err := store.DecodeRecord(entry.Record, c.App, job)
	return r.Orders, err
}
