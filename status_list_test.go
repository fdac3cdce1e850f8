package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A lister counts listings and reads; err ends each listing after so many entries.
type lister struct {
	*local.Memory
	err          error
	after        int
	lists, reads atomic.Int64
}

func (l *lister) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	l.lists.Add(1)
	told := 0
	err := l.Memory.List(ctx, app, func(name string, e store.Entry) bool {
		told++
		return (l.err == nil || told <= l.after) && f(name, e)
	})
	return errors.Join(l.err, err)
}

func (l *lister) Read(ctx context.Context, name string) (store.Entry, error) {
	l.reads.Add(1)
	return l.Memory.Read(ctx, name)
}

// many is work whose entries differ: n jobs, of which the last was never run.
func many(n int) (all []soloist.Work) {
	for i := range n {
		all = append(all, soloist.Job{Name: fmt.Sprintf("job-%02d", i), Schedule: fmt.Sprintf("%d * * * *", i), Do: nothing})
	}
	return all
}

// The status of many jobs is one listing, which tells what a read of each entry tells; that
// of a few jobs is a read of each, which costs less. What a listing does not tell is read.
func TestStatusOfManyJobsIsOneListing(t *testing.T) {
	for what, one := range map[string]struct {
		jobs, after  int
		err          error
		lists, reads int64
	}{
		"few":                    {11, 0, nil, 0, 11},
		"many":                   {12, 0, nil, 1, 0},
		"no right to list":       {12, 0, fs.ErrPermission, 1, 12},
		"a listing that breaks":  {12, 5, errors.New("the network"), 1, 7},
		"a listing of all fails": {12, 12, errors.New("the network"), 1, 1}, // the last entry is none
	} {
		inCase(t, what, func(t *testing.T, c *cluster) {
			work := many(one.jobs)
			c.start("a", work[:one.jobs-1]...)
			time.Sleep(5*time.Minute + time.Second)
			defer c.occupy("job-07")()
			everywhere := soloist.Job{Name: "everywhere", Schedule: "@hourly", EveryReplica: true, Do: nothing}
			reader := c.replica("b", append(work, everywhere)...)
			want, err := reader.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			backend := &lister{Memory: c.store, err: one.err, after: one.after}
			reader = c.replica("c", append(work, everywhere)...)
			reader.Store = backend
			got, err := reader.Status(t.Context())
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, want)
			}
			if lists, reads := backend.lists.Load(), backend.reads.Load(); lists != one.lists || reads != one.reads {
				t.Errorf("%d listings and %d reads, want %d and %d", lists, reads, one.lists, one.reads)
			}
		})
	}
}

// The status of one job reads its record alone, however many jobs there are.
func TestStatusOfOneJobReadsItsRecord(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("a", many(12)...)
		time.Sleep(5*time.Minute + time.Second)
		backend := &lister{Memory: c.store}
		reader := c.replica("b", many(12)...)
		reader.Store = backend
		st, err := reader.StatusOf(c.t.Context(), "job-03")
		if err != nil || st.Name != "job-03" || len(st.Record.History) != 1 || backend.lists.Load() != 0 || backend.reads.Load() != 1 {
			c.t.Errorf("got %+v, %v after %d listings and %d reads", st, err, backend.lists.Load(), backend.reads.Load())
		}
		if _, err := reader.StatusOf(c.t.Context(), "nobody"); err == nil {
			c.t.Error("a job that there is not: got no error")
		}
	})
}

// A listing that hangs costs no more than its time; then each entry is read.
func TestListingThatHangsIsGivenUp(t *testing.T) {
	inCluster(t, func(c *cluster) {
		reader := c.replica("a", many(12)...)
		reader.Store = hangs{c.store}
		start := time.Now()
		all, err := reader.Status(c.t.Context())
		if took := time.Since(start); err != nil || all[0].Err != nil || took > 15*time.Second {
			c.t.Errorf("got %v, %v after %s", all[0].Err, err, took)
		}
	})
}

type hangs struct{ *local.Memory }

func (hangs) List(ctx context.Context, _ string, _ func(string, store.Entry) bool) error {
	<-ctx.Done()
	return ctx.Err()
}

// Of two statuses, the second decodes only the records that have changed in between.
func TestStatusDecodesWhatHasChanged(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("a", many(12)...)
		time.Sleep(5*time.Minute + 30*time.Second)
		reader := c.replica("b", many(12)...)
		before, err := reader.Status(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		before[3].Record.Counts["forged"] = 1 // what a caller writes there is its own
		time.Sleep(time.Minute)
		after, err := reader.Status(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		for i, tick := range []int{5: 5, 6: 6} { // job-05 has run before, job-06 in between
			if got := after[i].Record.History; tick > 0 && (len(got) != 1 || got[0].Tick.Minute() != tick) {
				c.t.Errorf("%s: got %+v, want the tick of minute %d", after[i].Name, got, tick)
			}
		}
		if &before[5].Record.History[0] != &after[5].Record.History[0] || after[3].Record.Counts["forged"] != 0 {
			c.t.Error("a record that has not changed was decoded again, or shares its counts")
		}
	})
}
