package alarm_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/alarm/alarmtest"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/nightly"
)

const (
	stay    = 2 * time.Minute  // how long a replica waits for a tick
	polling = 20 * time.Second // how often the platform looks at the queue
	asleep  = 5 * time.Second  // how long Clear hides a message that it leaves
)

// The fates of the call that a trial is about.
const (
	killBefore = "killed before"
	killAfter  = "killed after"
	unheard    = "the answer is lost"
	refused    = "refused"
)

// A platform is an app that is scaled to zero: it starts a replica when a message is visible and none is up.
type platform struct {
	t     *testing.T
	blob  blobtest.Blob
	queue alarmtest.Queue
	trial string

	mu   sync.Mutex
	runs map[string]time.Time // when a run began, by its ID
	gone sync.WaitGroup       // the remains of processes that were killed
}

// A process is one start of a replica. From its fatal call on it makes no more calls.
type process struct {
	*platform
	fatal int    // the number of the call that has a fate; zero: none
	fate  string // of that call
	alive context.Context
	kill  context.CancelFunc
	calls atomic.Int64
}

var errRefused = errors.New("503")

// call makes one call of the process. It is applied as its fate says.
func (p *process) call(apply func() error) error {
	isFatal := p.calls.Add(1) == int64(p.fatal)
	if isFatal && p.fate == killBefore {
		p.kill()
	}
	switch {
	case p.alive.Err() != nil:
		return p.alive.Err()
	case !isFatal:
		return apply()
	case p.fate == refused:
		return errRefused
	}
	err := apply()
	if p.fate == unheard {
		return errors.Join(alarmtest.ErrUnclear, err)
	}
	p.kill()
	return p.alive.Err()
}

// RoundTrip is the way to the Blob service.
func (p *process) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	if err = p.call(func() (err error) { resp, err = p.blob.RoundTrip(r); return err }); err != nil {
		resp = nil
	}
	return resp, err
}

func (p *process) Do(r *http.Request) (*http.Response, error) { return p.RoundTrip(r) }

// A wire is a process's way to the queue.
type wire struct{ *process }

func (w wire) Put(ctx context.Context, body []byte, hidden time.Duration) (r alarm.Receipt, err error) {
	err = w.call(func() (err error) { r, err = w.queue.Put(ctx, body, hidden); return err })
	return r, err
}

func (w wire) Receive(ctx context.Context, most int, hide time.Duration) (got []alarm.Message, err error) {
	if err = w.call(func() (err error) { got, err = w.queue.Receive(ctx, most, hide); return err }); err != nil {
		got = nil
	}
	return got, err
}

func (w wire) Delete(ctx context.Context, r alarm.Receipt) error {
	return w.call(func() error { return w.queue.Delete(ctx, r) })
}

// jobs are of several kinds, all of them at full hours.
func (p *platform) jobs() []soloist.Job {
	do := func(ctx context.Context, run *soloist.Run) error {
		p.mu.Lock()
		p.runs[run.ID()] = time.Now()
		p.mu.Unlock()
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	all := []soloist.Job{
		{Name: "plain", Schedule: "@hourly"},
		{Name: "again", Schedule: "@hourly", Interrupted: soloist.Rerun},
		{Name: "each", Schedule: "@hourly", Missed: soloist.RunAll, FinishBy: 30 * time.Minute},
		{Name: "report", After: "plain", AfterAny: true},
		{Name: "parts", Schedule: "@hourly", Shards: 2, Interrupted: soloist.Rerun},
		{Name: "off", Schedule: "@hourly", Paused: true},
		{Name: "here", Schedule: "@hourly", EveryReplica: true},
	}
	for i := range all {
		if all[i].Do = do; !all[i].EveryReplica {
			all[i].Lease = 15 * time.Second
		}
	}
	return all
}

// start starts a process, and returns when it has ended or was killed, and how many calls it has made.
func (p *platform) start(name string, fatal int, fate string) (calls int) {
	one := &process{platform: p, fatal: fatal, fate: fate}
	one.alive, one.kill = context.WithCancel(context.Background())
	defer one.kill()
	over := make(chan struct{})
	p.gone.Go(func() {
		defer close(over)
		one.serve(name)
	})
	select {
	case <-over:
	case <-one.alive.Done():
	}
	return int(one.calls.Load())
}

// serve does what a program does that a message has started: passes while something is due within its stay, then a hand-over.
func (p *process) serve(name string) {
	backend, err := azure.Open(azure.Config{Transport: p,
		ConnectionString: "BlobEndpoint=https://app.blob.core.windows.net;SharedAccessSignature=sv=2026&sig=none"})
	if err != nil {
		p.t.Error(err)
		return
	}
	begin := time.Now()
	s := &soloist.Scheduler{App: "app", Replica: name, Jobs: p.jobs(), Store: backend, Logger: slog.New(slog.DiscardHandler),
		Elapsed: func() time.Duration { return time.Since(begin) }}
	clock := &alarm.Clock{App: "app", Queue: wire{p}, Notes: backend, Now: time.Now}
	for ctx := p.alive; ctx.Err() == nil; {
		began := time.Now()
		_, _ = s.RunDue(ctx, soloist.Wake{})
		due, err := s.NextDue(ctx)
		if err != nil {
			p.t.Error(err)
			return
		}
		if wait := time.Until(due); due.IsZero() || wait > stay {
			if err = clock.HandOver(ctx, due, began); err != nil && !errors.Is(err, alarm.ErrPending) && ctx.Err() == nil && p.fatal == 0 {
				p.t.Errorf("%s: HandOver: %v", p.trial, err)
			}
			return
		} else {
			time.Sleep(max(wait, time.Second))
		}
	}
}

// watch checks, while no replica is up, that a message is visible, or will be in time for the next tick.
func (p *platform) watch() {
	now := time.Now()
	by := now.Truncate(time.Hour).Add(time.Hour - alarm.DefaultLead)
	if by.Before(now) {
		by = now
	}
	if first := p.queue.First(); first.IsZero() || first.After(by.Add(asleep)) {
		p.t.Errorf("%s: at %s nothing is pending by %s: %v", p.trial, now.Format(time.TimeOnly), by.Format(time.TimeOnly), first)
	}
}

// pass starts processes whenever a message is visible, until an instant. The process of number victim has a fatal call.
func (p *platform) pass(until time.Time, victim, fatal int, fate string) (calls int) {
	for n := 0; time.Now().Before(until) && !p.t.Failed(); {
		p.watch()
		if p.queue.Visible(time.Now()) == 0 {
			time.Sleep(polling)
			continue
		}
		n++
		if n == victim {
			calls = p.start(fmt.Sprint("r", n), fatal, fate)
			continue
		}
		p.start(fmt.Sprint("r", n), 0, "")
		if len(p.queue.All()) > 2 {
			p.t.Errorf("%s: %d messages after a later pass", p.trial, len(p.queue.All()))
		}
	}
	return calls
}

// A process that is killed at any call of any pass, or meets a fault there, leaves a message that becomes visible in time
// for the next tick. So each tick is run on time.
func TestKilledAtAnyCallAnAlarmIsPending(t *testing.T) {
	for _, victim := range []int{1, 2} {
		for _, fate := range []string{killBefore, killAfter, unheard, refused} {
			t.Run(fmt.Sprintf("pass %d, %s", victim, fate), func(t *testing.T) {
				t.Parallel()
				fatal, step := 1, 1
				if !nightly.Runs() {
					step = 5
				}
				for !t.Failed() && trial(t, victim, fatal, fate) >= fatal {
					fatal += step
				}
				if t.Logf("%d calls", fatal-1); fatal < 20 {
					t.Errorf("only %d calls were tried", fatal-1)
				}
			})
		}
	}
}

// trial is two hours of an app. It returns how many calls the victim has made.
func trial(t *testing.T, victim, fatal int, fate string) (calls int) {
	synctest.Test(t, func(t *testing.T) {
		p := &platform{t: t, runs: map[string]time.Time{}, trial: fmt.Sprintf("call %d of process %d %s", fatal, victim, fate)}
		begin := time.Now()
		p.queue.Add("by a person, who has deployed the app", begin.Add(-time.Minute), begin.Add(-time.Minute))
		calls = p.pass(begin.Add(2*time.Hour+10*time.Minute), victim, fatal, fate)
		p.gone.Wait()
		for _, job := range []string{"plain", "again", "each", "report", "parts-0", "parts-1"} {
			for hour := 1; hour <= 2; hour++ {
				tick := begin.Add(time.Duration(hour) * time.Hour)
				at, ran := p.runs[job+"@"+tick.UTC().Format(time.RFC3339)]
				killed := victim == 2 && hour == 1 && (fate == killBefore || fate == killAfter)
				lost := killed && (job == "plain" || job == "each" || job == "report") // which are not repeated
				if !ran && !lost || ran && at.Sub(tick) > 90*time.Second {
					t.Errorf("%s: %s at %s: ran %v, after %s", p.trial, job, tick.Format(time.TimeOnly), ran, at.Sub(tick))
				}
			}
		}
		if n := len(p.queue.All()); n > 2 {
			t.Errorf("%s: %d messages are left", p.trial, n)
		}
	})
	return calls
}
