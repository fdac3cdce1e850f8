package platform_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/proof/zero/platform"
)

// A process ends when it is stopped, or when the test says so.
type process struct {
	begun   time.Time
	stopped atomic.Bool
	gone    chan struct{}
}

func (p *process) Gone() <-chan struct{} { return p.gone }
func (p *process) Stop(time.Duration) error {
	p.stopped.Store(true)
	close(p.gone)
	return nil
}

// A world is a platform in virtual time, and the scaler whose answer the test sets.
type world struct {
	platform.Platform
	begun time.Time
	end   func() error

	mu     sync.Mutex
	active bool
	err    error
	all    []*process
	told   []platform.Event
}

func (w *world) Look(context.Context) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.active, w.err
}

// looks has each look find messages or none, or fail if there is an error.
func (w *world) looks(active bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active, w.err = active, err
}

// start starts a platform with the service's rules.
func start(t *testing.T, job bool) *world {
	w := &world{begun: time.Now()}
	w.Platform = platform.Platform{
		Rules: platform.Rules{Job: job, Polling: 30 * time.Second, CoolDown: 5 * time.Minute, Restart: 10 * time.Second,
			Grace: 30 * time.Second},
		Scaler: w,
		Start: func() (platform.Replica, error) {
			p := &process{begun: time.Now(), gone: make(chan struct{})}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.all = append(w.all, p)
			return p, nil
		},
		Tell: func(e platform.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, e)
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Platform.Run(ctx) }()
	w.end = func() error { cancel(); return <-done }
	synctest.Wait()
	return w
}

// at goes to a time after the start.
func (w *world) at(after time.Duration) {
	time.Sleep(time.Until(w.begun.Add(after)))
	synctest.Wait()
}

// started returns all replicas, in order.
func (w *world) started() []*process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clip(w.all)
}

// events returns what was told.
func (w *world) events() (what []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.told {
		text := e.What
		if e.Err != nil {
			text += ": " + e.Err.Error()
		}
		what = append(what, text)
	}
	return what
}

// up counts the replicas that have not ended.
func (w *world) up() (n int) {
	for _, p := range w.started() {
		select {
		case <-p.gone:
		default:
			n++
		}
	}
	return n
}

func TestAppIsScaledToZeroAfterItsCoolDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, false)
		defer w.end()
		w.looks(true, nil)
		w.at(time.Minute)
		w.looks(false, nil)
		w.at(6 * time.Minute) // the last look that was active is five minutes ago, not more
		if w.up() != 1 {
			t.Fatal("scaled in before the cool-down was over")
		}
		w.at(6*time.Minute + 30*time.Second)
		if w.up() != 0 || !w.started()[0].stopped.Load() {
			t.Fatal("not scaled to zero at the first look after the cool-down")
		}
		w.at(9*time.Minute + time.Second)
		w.looks(true, nil)
		w.at(9*time.Minute + 29*time.Second)
		if len(w.started()) != 1 {
			t.Fatal("woken between two looks")
		}
		w.at(9*time.Minute + 30*time.Second)
		if w.up() != 1 {
			t.Fatal("not woken by the look after the message")
		}
		if got, want := w.events(), []string{platform.ScaledIn, platform.Woken}; !slices.Equal(got, want) {
			t.Errorf("got events %q, want %q", got, want)
		}
	})
}

var errNone = errors.New("no such queue")

func TestErrorOfScalerChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, false)
		defer w.end()
		w.looks(false, errNone)
		w.at(time.Hour)
		if got := w.events(); w.up() != 1 || !slices.Equal(got, slices.Repeat([]string{"failed: no such queue"}, 120)) {
			t.Errorf("got %d replicas, %d events: %q", w.up(), len(got), got)
		}
	})
}

// A replica of an app that ends by itself is started again as long as one is wanted.
func TestReplicaOfAppIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, false)
		defer w.end()
		w.looks(true, nil)
		var pauses []time.Duration
		for n := range 8 {
			ended := time.Now()
			close(w.started()[n].gone)
			for len(w.started()) == n+1 {
				time.Sleep(time.Second)
				synctest.Wait()
			}
			pauses = append(pauses, w.started()[n+1].begun.Sub(ended).Round(time.Second))
		}
		want := []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second,
			300 * time.Second, 300 * time.Second}
		if !slices.Equal(pauses, want) {
			t.Errorf("got pauses %v, want %v", pauses, want)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		close(w.started()[8].gone)
		synctest.Wait()
		if w.up() != 1 {
			t.Error("a replica that has run for ten minutes was not started again at once")
		}
	})
}

// A replica that waits to be started again does not come after its app was scaled to zero.
func TestRestartEndsWithScaleToZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, false)
		defer w.end()
		for n, at := range []time.Duration{0, 0, 10, 30, 70, 180} { // the next one would come after 340 s
			w.at(at * time.Second)
			close(w.started()[n].gone)
			synctest.Wait()
		}
		w.at(time.Hour)
		if n := len(w.started()); n != 6 || w.up() != 0 {
			t.Errorf("got %d replicas, %d of them up, want 6 and none", n, w.up())
		}
	})
}

func TestJobRunsToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, true)
		defer w.end()
		w.at(time.Hour)
		if w.up() != 1 {
			t.Fatal("the execution of the deployment was stopped")
		}
		w.looks(true, nil)
		w.at(2 * time.Hour)
		if len(w.started()) != 1 {
			t.Fatalf("got %d executions for one message, want the one that runs", len(w.started()))
		}
		close(w.started()[0].gone)
		w.at(2*time.Hour + 30*time.Second)
		if w.up() != 1 || len(w.events()) != 1 || w.events()[0] != platform.Woken {
			t.Fatalf("got %d executions, events %q", w.up(), w.events())
		}
	})
}

func TestRunStopsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, job := range []bool{false, true} {
			w := start(t, job)
			w.looks(true, nil)
			w.at(time.Minute)
			if err := w.end(); err != nil || w.up() != 0 || len(w.started()) != 1 {
				t.Errorf("job %v: got %v, %d of %d replicas left", job, err, w.up(), len(w.started()))
			}
		}
	})
}

func TestRulesAreChecked(t *testing.T) {
	if err := new(platform.Platform).Run(t.Context()); err == nil {
		t.Error("no error of rules that are all zero")
	}
}
