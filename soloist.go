// Package soloist runs work so that, of all replicas of a program, one does it.
//
// A [Job] runs at the ticks of a schedule: each tick is run by one replica of
// all. A [Singleton] runs all the time, on one replica at a time. The lock
// is a lease in a [store.Store], as a blob on Azure has one.
//
// Most programs call [host.Main], which adds the command line, settings, storage,
// logs and HTTP:
//
//	func main() {
//		host.Main(soloist.Job{Name: "report", Schedule: "@hourly", Do: report})
//	}
//
// A program that has these already runs a [Scheduler] of its own. A [Lock] and
// a [Once] need no schedule.
//
// # What is promised
//
//   - A tick is claimed, durably, before it is run, and only one claim can succeed.
//     A lease alone would not be enough: it says who may run now, so a replica whose
//     clock is behind could acquire it after the run and run the tick again. The claim
//     in the record prevents that.
//
//   - Each tick of a job ends with one recorded outcome, even if replicas die.
//
//   - A runner that dies, hangs or is cut off is replaced as soon as its lease
//     has lapsed, within Lease plus two seconds, if something waits for that: a tick
//     that is due, another attempt, a singleton. Otherwise it takes up to a minute more.
//
//   - While its context lives, a run is the only one of its name. The context
//     ends before the service can give the lease to another.
//
//   - A run that makes no progress loses its lease: see [Job.HeartbeatTimeout] and
//     [Job.HealthCheck]. When a replica stops, it hands its runs over: within
//     [Scheduler.Grace] the other replicas read the record ten times a second, so one
//     of them starts a moment after the run has returned. With a Grace of zero they
//     read it at each third of the lease, as before. A checkpoint, [Run.Save],
//     survives a stall and a stop, and also a success: it is the job's and not the
//     tick's, so [Run.Load] gives the next tick what the last one saved.
//
// A replica trusts its lease until
//
//	last successful renewal was sent + Lease - Lease/100 - Lease/6
//
// The hundredth is by how much the rates of two clocks may differ. The sixth is
// the time to stop. The time of day on any machine does not matter. The time for
// which a machine is suspended counts on Linux; see [Scheduler.Elapsed] for other
// systems.
//
// # What is not promised
//
//   - That a run which ignores the end of its context has stopped. Go cannot
//     stop a goroutine; [Scheduler.Overrun] is where to end the process. Give
//     [Run.Token] to whatever the run writes to, and let it refuse a smaller one.
//   - That a tick runs when no replica is up or the store is out of reach. It is
//     then recorded as missed, later.
//   - Exactly one effect on the world. A runner may die between its effect and
//     the record of it; [Job.Interrupted] says what then.
//   - One run at a time on a virtual machine that its hypervisor pauses, where
//     no clock of the guest counts the pause. A claim and a write of the record
//     are still refused; an effect elsewhere needs [Run.Token].
//   - A start on the second. The replicas agree before a tick which of them runs it, so a
//     start takes one call to the store, or none with [Job.ClaimAhead]; but on a busy
//     machine a tick starts late. A replica whose
//     wall clock is fast may start it early, until the service's clock proves the
//     time wrong: by a second, since the service's dates have whole seconds, and by
//     the time that one request takes to reach the service.
//
// [host.Main]: https://pkg.go.dev/github.com/soloist-go/soloist/host#Main
package soloist

import (
	"context"
	"sync"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/strangers"
	"github.com/soloist-go/soloist/store"
)

// Run does the work until ctx ends, then lets running jobs go on for Grace. It returns when
// everything that it started has ended. Its error is Validate's, else nil. Trouble with the
// store is logged, and the calls are repeated.
func (s *Scheduler) Run(ctx context.Context) error {
	if err := s.Validate(); err != nil {
		return err
	}
	defer s.core.told.flush()
	defer s.core.Replica.Orders.Use()()
	var all sync.WaitGroup
	if s.core.spread != nil {
		all.Go(func() { s.core.spread.Run(ctx) })
	}
	all.Go(func() { s.sayStrangers(ctx) })
	watching, end := context.WithCancel(context.WithoutCancel(ctx)) // until the last lease is released, of which others are to know
	all.Go(func() { runner.Watch(watching, s.core.Replica, s.core.Runners) })
	runner.Loop(ctx, s.core.Runners)
	end()
	all.Wait()
	return nil
}

// sayStrangers logs, once, that another program seems to use the App.
func (s *Scheduler) sayStrangers(ctx context.Context) {
	if _, lists := s.Store.(store.Lister); !lists {
		return
	}
	own := map[string]bool{}
	for _, r := range s.core.Runners {
		own[r.Name()] = true
	}
	client := &lease.Client{Store: s.Store, Length: defaultLease, Clock: s.core.Replica.Clock}
	if jobs, replicas := strangers.Find(ctx, client, s.App, func(job string) bool { return own[job] }); len(jobs) > 0 {
		s.core.told.log.Warn("other replicas of the app run jobs that this program does not have", "app", s.App, "jobs", jobs,
			"replicas", replicas, "advice", "two programs take each other's ticks of the jobs that both have: give each an App of its own")
	}
}

// Run campaigns for the lease, does the task while it holds the lease, and campaigns again, until
// ctx ends; it returns after Do has returned. The error says what is wrong with s, else it is nil.
// The entry is "soloist/<Name>": use a [Scheduler] with an App if several programs share a store.
//
// Its Grace is zero: when ctx ends, the context of Do ends at once, and the record does not announce
// it to the other replicas. Once Do has returned, the next replica starts within about a third of the
// lease. A [Scheduler] with a Grace hands over faster.
func (s *Singleton) Run(ctx context.Context, backend store.Store) error {
	return runAlone(ctx, *s, backend)
}

// runAlone runs a singleton in a scheduler of its own.
func runAlone(ctx context.Context, g Singleton, backend store.Store) error {
	return (&Scheduler{Singletons: []Singleton{g}, Store: backend}).Run(ctx)
}
