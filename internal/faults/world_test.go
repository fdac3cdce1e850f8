// Package faults_test lets replicas meet the faults of a network and of a
// service, in virtual time: each has its own store, with the real client
// library over a line of its own, to one simulated Blob service. What the
// service's log says afterwards decides whether all went well.
package faults_test

import (
	"context"
	"flag"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/azure"
)

// D is the lease of all jobs here, the shortest that the service takes.
const D = 15 * time.Second

// trust is how long after its renewal was sent a lease may be believed in: the
// promise of the package comment.
const trust = D - D/100 - D/6

// Secrets, easily recognised. The key is base64, of "do-not-tell-anybody!".
const (
	accountKey = "ZG8tbm90LXRlbGwtYW55Ym9keSE="
	signature  = "DoNotTellThisSignature"
)

const (
	byKey       = "AccountName=sim;AccountKey=" + accountKey
	bySignature = "BlobEndpoint=https://sim.blob.core.windows.net;SharedAccessSignature=sv=2026&sig=" + signature
)

func by(connection string) func() azure.Config {
	return func() azure.Config { return azure.Config{ConnectionString: connection} }
}

var seedFlag = flag.Uint64("seed", 0, "of the faults; 0: one that the name of the test makes")

// A world is some replicas of one program around one service.
type world struct {
	t       *testing.T
	job     job
	config  func() azure.Config // of each replica; its Transport is a line
	service service

	replicas []*replica
	underWay sync.WaitGroup // late deliveries

	mu   sync.Mutex
	rand *rand.Rand
	runs []*run
}

// A job is what a world does: each replica has it, as "work".
type job struct {
	every, takes time.Duration
	interrupted  soloist.InterruptedPolicy
}

// A replica is one scheduler, its line and its log.
type replica struct {
	*soloist.Scheduler
	line *line
	log  *book
	stop func() // as SIGTERM; waits
}

// A run is one call of the job's Do.
type run struct {
	*soloist.Run
	replica    string
	start, end time.Time
	cause      error // why its context had ended
}

// in runs f in a bubble of virtual time that starts at midnight, stops all
// replicas, and has the checker look at what they did.
func in(t *testing.T, j job, f func(w *world)) {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		h := fnv.New64a()
		h.Write([]byte(t.Name()))
		seed = h.Sum64()
	}
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, job: j, config: by(byKey), rand: rand.New(rand.NewPCG(seed, 0))}
		defer func() {
			w.end()
			w.check()
			if t.Failed() {
				t.Logf("the faults came from -seed %d", seed)
			}
		}()
		f(w)
	})
}

func (w *world) end() {
	for _, r := range w.replicas {
		if r.stop != nil {
			r.stop()
		}
	}
	w.underWay.Wait()
	time.Sleep(time.Minute) // a fetch of a token may outlive its replica
}

// start makes and starts replicas.
func (w *world) start(names ...string) {
	w.t.Helper()
	w.make(names...)
	w.launch()
}

// make makes replicas that launch will start.
func (w *world) make(names ...string) {
	w.t.Helper()
	for _, name := range names {
		r := &replica{line: &line{w: w, replica: name, claims: map[string]string{}}, log: &book{}}
		config := w.config()
		config.Transport = r.line
		store, err := azure.Open(config)
		if err != nil {
			w.t.Fatal(err)
		}
		r.Scheduler = &soloist.Scheduler{Store: store, Replica: name,
			Logger: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Jobs: []soloist.Job{{Name: "work", Schedule: "@every " + w.job.every.String(), Lease: D,
				Interrupted: w.job.interrupted, Do: w.do(name)}},
		}
		w.replicas = append(w.replicas, r)
	}
}

func (w *world) launch() {
	for _, r := range w.replicas {
		if r.stop != nil {
			continue
		}
		ctx, cancel := context.WithCancel(w.t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := r.Run(ctx); err != nil {
				w.t.Errorf("Run: %v", err)
			}
		}()
		r.stop = func() { cancel(); <-done }
	}
}

// do takes its time and obeys its context.
func (w *world) do(replica string) func(context.Context, *soloist.Run) error {
	return func(ctx context.Context, r *soloist.Run) error {
		one := &run{Run: r, replica: replica, start: time.Now()}
		w.mu.Lock()
		w.runs = append(w.runs, one)
		w.mu.Unlock()
		err := pause(ctx, w.job.takes)
		w.mu.Lock()
		defer w.mu.Unlock()
		one.end, one.cause = time.Now(), context.Cause(ctx)
		return err
	}
}

// all returns the runs so far, in the order of their starts.
func (w *world) all() (out []run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.runs {
		out = append(out, *r)
	}
	return out
}

// chance is true with probability p.
func (w *world) chance(p float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.Float64() < p
}

func (w *world) upTo(d time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.rand.Int64N(int64(d)))
}

// sometimes is a fault that strikes a share of the requests.
func (w *world) sometimes(share float64, f fault) fault {
	return func(c *call) (*http.Response, error) {
		if w.chance(share) {
			return f(c)
		}
		return c.deliver()
	}
}

// first is a fault that strikes the first n requests of one operation, on
// whichever line they come.
func first(n int, op string, f fault) fault {
	var left atomic.Int64
	left.Store(int64(n))
	return func(c *call) (*http.Response, error) {
		if c.op == op && left.Add(-1) >= 0 {
			return f(c)
		}
		return c.deliver()
	}
}

// meet sets the fault of all lines.
func (w *world) meet(f fault) {
	for _, r := range w.replicas {
		r.line.meet(f)
	}
}

// running waits for a run and returns its replica.
func (w *world) running() (*replica, run) {
	w.t.Helper()
	for range 600 {
		if runs := w.all(); len(runs) > 0 && runs[len(runs)-1].end.IsZero() {
			r := runs[len(runs)-1]
			return w.replicas[slices.IndexFunc(w.replicas, func(o *replica) bool { return o.Replica == r.replica })], r
		}
		time.Sleep(time.Second)
	}
	w.t.Fatal("nothing runs")
	return nil, run{}
}

// outcome is what has become of a run by now.
func (w *world) outcome(of run) run {
	runs := w.all()
	return runs[slices.IndexFunc(runs, func(r run) bool { return r.Token == of.Token })]
}

// wellAfter gives the world the time that it may take to go on after a fault,
// and looks whether it does.
func (w *world) wellAfter(over time.Time) {
	w.t.Helper()
	time.Sleep(time.Until(over.Add(soon + w.job.every + w.job.takes)))
	good := func(r run) bool { return r.start.After(over) && !r.end.IsZero() && r.cause == nil }
	if i := slices.IndexFunc(w.all(), good); i < 0 {
		w.t.Errorf("no run went well since %s", over.Format(time.TimeOnly))
	} else if late := w.all()[i].start.Sub(over); late > soon+w.job.every {
		w.t.Errorf("the first good run began %s after the fault", late)
	}
	for _, r := range w.replicas {
		if h := r.Health(); h.Storage != nil || len(h.Broken) > 0 || len(h.Stuck) > 0 {
			w.t.Errorf("%s: %+v", r.Replica, h)
		}
	}
}

// soon is how long after a fault all that is due has been begun: a lease that
// is still taken, and the longest pause between two looks.
const soon = D + 10*time.Second + 2*time.Second

// A book keeps what a replica logs.
type book struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *book) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *book) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
