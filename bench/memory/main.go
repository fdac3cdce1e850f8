//go:build linux

// Memory measures what the scheduler itself takes: one replica with many jobs over a store in memory, where no call waits.
//
//	go run ./memory
//
// Each row of its table is a process of its own, so that no row pays for what the one before has left. Code 1: a tick ran
// twice or was lost, or a process failed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

// A load is the jobs of one replica. The busy ones are due at once in each period; the others are due once a day, and not
// while it is measured.
type load struct {
	Jobs, Busy int
	Period     time.Duration // of a load without busy jobs: how long it is measured
	Ticks      int
	Ahead      bool
}

// loads are the rows of the table.
var loads = []load{
	{Jobs: 1000, Busy: 1000, Period: 10 * time.Second, Ticks: 5},
	{Jobs: 10000, Busy: 10000, Period: 10 * time.Second, Ticks: 5},
	{Jobs: 1000, Busy: 1000, Period: 10 * time.Second, Ticks: 5, Ahead: true},
	{Jobs: 10000, Busy: 10000, Period: 10 * time.Second, Ticks: 5, Ahead: true},
	{Jobs: 1000, Period: 70 * time.Second}, // a replica reads each record once a minute
	{Jobs: 10000, Period: 70 * time.Second},
	{Jobs: 100, Busy: 100, Period: time.Second, Ticks: 30},
	{Jobs: 10000, Busy: 100, Period: time.Second, Ticks: 30},
}

func main() {
	var err error
	if order, ok := proctest.Order(); ok {
		err = serve(order)
	} else {
		err = table(os.Stdout, loads)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

// table prints a row for each load.
func table(out io.Writer, loads []load) (wrong error) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "JOBS\tDUE AT ONCE\tEVERY\tAHEAD\tRUNS\tTWICE\tLOST\tMEDIAN START\tLAST START\tLAST OUTCOME\tCPU A TICK\tCPU\tBYTES A JOB")
	for _, l := range loads {
		r, err := run(l)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%d\t%d\t%s\t%t\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%.2f %%\t%d\n", l.Jobs, l.Busy, l.Period, l.Ahead, r.Runs, r.Twice, r.Lost,
			r.Median.Round(time.Microsecond), r.Last.Round(time.Microsecond), r.Outcome.Round(time.Microsecond),
			(r.CPU / time.Duration(max(1, r.Runs))).Round(time.Microsecond), 100*float64(r.CPU)/float64(r.Wall), r.Bytes/int64(l.Jobs))
		if r.Twice+r.Lost > 0 {
			wrong = errors.Join(wrong, fmt.Errorf("%d jobs: %d ticks ran twice, %d did not run", l.Jobs, r.Twice, r.Lost))
		}
	}
	return errors.Join(wrong, w.Flush())
}

// run has a process measure a load, and returns what it prints.
func run(l load) (r result, err error) {
	order, _ := json.Marshal(l) // of numbers
	var told []byte
	p, err := proctest.Command{Program: proctest.Self(), Env: []string{proctest.As(string(order))},
		Stdout: func(line string) { told = []byte(line) }}.Start()
	if err != nil {
		return r, err
	}
	if code := p.Code(); code != 0 {
		return r, fmt.Errorf("the process with %d jobs ended with code %d", l.Jobs, code)
	}
	return r, json.Unmarshal(told, &r)
}

// serve is such a process.
func serve(order string) (err error) {
	var l load
	if err := json.Unmarshal([]byte(order), &l); err != nil {
		return err
	}
	memory := &local.Memory{}
	created := &counted{Memory: memory, wrote: func(time.Time) {}}
	stop := l.start(created, func(int, time.Time) {})
	for late := time.Now().Add(2 * time.Minute); created.entries.Load() < int64(l.Jobs); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			return fmt.Errorf("after two minutes the replica has made %d of %d entries", created.entries.Load(), l.Jobs)
		}
	}
	stop()
	return json.NewEncoder(os.Stdout).Encode(l.measure(memory))
}

// settle is how long a replica has to read all records after its start.
const settle = 5 * time.Second

// measure measures a replica that finds all its entries made.
func (l load) measure(memory *local.Memory) (r result) {
	before, watch := used(), newWatch(l)
	stop := l.start(&counted{Memory: memory, wrote: watch.wrote}, watch.started)
	defer stop()
	time.Sleep(settle)
	r.Bytes = used() - before
	time.Sleep(time.Until(watch.begin))
	spent := cpu()
	time.Sleep(time.Until(watch.end))
	r.CPU, r.Wall = cpu()-spent, watch.end.Sub(watch.begin)
	watch.judge(&r)
	runtime.KeepAlive(memory)
	return r
}

// start starts a replica. It calls started with the number of a job and its tick.
func (l load) start(s store.Store, started func(int, time.Time)) (stop func()) {
	replica := &soloist.Scheduler{Store: s, Logger: slog.New(slog.DiscardHandler), Replica: "bench"}
	far := time.Now().UTC().Add(12 * time.Hour)
	for n := range l.Jobs {
		j := soloist.Job{Name: fmt.Sprintf("job-%d", n), Schedule: far.Format("4 15 * * *"), ClaimAhead: l.Ahead}
		if n < l.Busy {
			j.Schedule = "@every " + l.Period.String()
		}
		j.Do = func(_ context.Context, run *soloist.Run) error {
			started(n, run.Tick)
			return nil
		}
		replica.Jobs = append(replica.Jobs, j)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- replica.Run(ctx) }()
	return func() {
		cancel()
		<-done
	}
}

// A counted store counts new entries and reports each write of a record.
type counted struct {
	*local.Memory
	entries atomic.Int64
	wrote   func(at time.Time)
}

func (c *counted) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	defer c.entries.Add(1)
	return c.Memory.Create(ctx, name, record)
}

func (c *counted) Lease(name, id string) store.Lease { return leased{c.Memory.Lease(name, id), c} }

type leased struct {
	store.Lease
	all *counted
}

func (l leased) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	defer func() { l.all.wrote(time.Now()) }()
	return l.Lease.Write(ctx, etag, record)
}

// cpu is the time that this process had on all processors.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails of wrong arguments alone
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// used is the memory that this process needs: what is reachable, and the stacks.
func used() int64 {
	runtime.GC() // twice: finalizers run in between
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
