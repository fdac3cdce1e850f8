package scenarios_test

import (
	"context"
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// Secrets, easily recognised. The key is base64, of "do-not-tell-anybody!".
const (
	accountKey = "ZG8tbm90LXRlbGwtYW55Ym9keSE="
	signature  = "DoNotTellThisSignature"

	byKey       = "AccountName=sim;AccountKey=" + accountKey
	bySignature = "BlobEndpoint=https://sim.blob.core.windows.net;SharedAccessSignature=sv=2026&sig=" + signature
)

func by(connection string) func() azure.Config {
	return func() azure.Config { return azure.Config{ConnectionString: connection} }
}

var (
	eachFlag = flag.Bool("each", false, "run each case of a sweep, not the first")
	seedFlag = flag.Uint64("seed", 0, "of the faults; 0: one that the name of the test makes")
)

// TestMain lets the heap grow: a story makes little that lasts.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// A world is a story of one job, "work", that replicas run while faults come and go.
// A reply takes long enough that a deadline which is counted from it differs from
// one that is counted from the request.
type world struct {
	*story
	job  job
	rand *rand.Rand // guarded by mu
}

type job struct {
	every, takes time.Duration
	interrupted  soloist.InterruptedPolicy
}

// in runs f in a story that begins at midnight.
func in(t *testing.T, j job, f func(w *world)) {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		h := fnv.New64a()
		h.Write([]byte(t.Name()))
		seed = h.Sum64()
	}
	runScenario(t, func(s *story) {
		s.script.There, s.script.Back = 50*time.Millisecond, 250*time.Millisecond
		s.azure = by(byKey)
		f(&world{s, j, rand.New(rand.NewPCG(seed, 0))})
		if s.Failed() {
			s.Logf("the faults came from -seed %d", seed)
		}
	})
}

// inCase is in as a subtest.
func inCase(t *testing.T, name string, j job, f func(w *world)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { in(t, j, f) })
}

// beside is inCase beside others of its kind.
func beside(t *testing.T, name string, j job, f func(w *world)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		in(t, j, f)
	})
}

// fewer returns the first case of a sweep, or with -each all.
func fewer[T any](t *testing.T, all ...T) []T {
	t.Helper()
	if *eachFlag || len(all) == 1 {
		return all
	}
	t.Logf("of %d values the first: run it with -each for all", len(all))
	return all[:1]
}

// start has replicas begin.
func (w *world) start(names ...string) {
	work := sim.Work{Definition: trace.Definition{Every: w.job.every, Job: soloist.Job{Name: "work", Schedule: "@every " + w.job.every.String(), Lease: D, Interrupted: w.job.interrupted}},
		Act: func(ctx context.Context, run *sim.RunContext) error { return run.Sleep(ctx, w.job.takes) }}
	for _, name := range names {
		w.play(sim.Part{Name: name, Work: []sim.Work{work}})
	}
}

func (w *world) upTo(d time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.rand.Int64N(int64(d)))
}

// sometimes has a fault strike a share of the requests.
func (w *world) sometimes(share float64, f network) network {
	return func(ctx context.Context, p *sim.RPC) (*http.Response, error) {
		w.mu.Lock()
		strikes := w.rand.Float64() < share
		w.mu.Unlock()
		if strikes {
			return f(ctx, p)
		}
		return p.Go(ctx)
	}
}

func (w *world) runs() []trace.Event { return w.events(trace.Ran, "") }

// running waits for a run.
func (w *world) running() trace.Event {
	w.Helper()
	for range 600 {
		if runs := w.runs(); len(runs) > 0 && runs[len(runs)-1].End.IsZero() {
			return runs[len(runs)-1]
		}
		time.Sleep(time.Second)
	}
	w.Fatal("nothing runs")
	return trace.Event{}
}

// lost reports whether a run has ended since its lease was lost.
func (w *world) lost(run trace.Event) bool {
	runs := w.runs()
	run = runs[slices.IndexFunc(runs, func(r trace.Event) bool { return r.Token == run.Token })]
	return cause(run) == "lost"
}

// wellAfter gives the world the time that it may take to go on after a fault,
// and looks whether it does.
func (w *world) wellAfter(over time.Time) {
	w.Helper()
	time.Sleep(time.Until(over.Add(soon + w.job.every + w.job.takes)))
	runs := w.runs()
	good := func(r trace.Event) bool {
		return r.Time.After(over) && r.Why == "" && r.Result == trace.Well
	}
	if i := slices.IndexFunc(runs, good); i < 0 {
		w.Errorf("no run went well since %s", over.Format(time.TimeOnly))
	} else if late := runs[i].Time.Sub(over); late > soon+w.job.every {
		w.Errorf("the first good run began %s after the fault", late)
	}
	for name, r := range w.replicas {
		if h := r.Health(); h.Storage != nil || len(h.Broken) > 0 || len(h.Stuck) > 0 {
			w.Errorf("%s: %+v", name, h)
		}
	}
}

// soon is how long after a fault all that is due has been begun: a lease that
// is still taken, and the longest pause between two looks.
const soon = D + 10*time.Second + 2*time.Second

// sent is when a replica sent requests from one time to another.
func (w *world) sent(replica string, from, to time.Time) (all []time.Time) {
	for _, e := range w.events(trace.Request, replica) {
		if !e.Sent.Before(from) && !e.Sent.After(to) {
			all = append(all, e.Sent)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// bounded checks the busiest second from begin to a second after the end.
func (w *world) bounded(bound int, begin, over time.Time) {
	w.Helper()
	for name := range w.replicas {
		most, first := 0, 0
		sent := w.sent(name, begin, over.Add(time.Second))
		for i := range sent {
			for sent[i].Sub(sent[first]) >= time.Second {
				first++
			}
			most = max(most, i-first+1)
		}
		if most > bound {
			w.Errorf("%s sent %d requests in a second", name, most)
		}
	}
}

// tells looks for what must not be told.
func (s *story) tells(text string) {
	s.Helper()
	if found := secretIn(text); found != "" {
		s.Errorf("a secret is told: %s", found)
	}
}

func secretIn(text string) string {
	for _, secret := range []string{accountKey, "do-not-tell", signature, "SharedKey", "sig="} {
		if i := strings.Index(text, secret); i >= 0 {
			return text[max(0, i-200):min(len(text), i+50)]
		}
	}
	return ""
}

func TestSecretsAreFound(t *testing.T) {
	if secretIn("GET /?sv=1&sig=x") == "" || secretIn("the key "+accountKey) == "" || secretIn("the store is out of reach") != "" {
		t.Error("a secret is not found, or one where none is")
	}
}
