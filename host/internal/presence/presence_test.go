package presence_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host/internal/presence"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A world is a store that replicas share, and which can be out of reach.
type world struct {
	local.Memory
	t *testing.T

	mu     sync.Mutex
	down   error
	slow   time.Duration // each call
	reads  int
	writes int
	log    strings.Builder
}

func (w *world) call(ctx context.Context, count *int) error {
	w.mu.Lock()
	*count++
	down, slow := w.down, w.slow
	w.mu.Unlock()
	select {
	case <-time.After(slow):
		return down
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *world) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	if err := w.call(ctx, &w.reads); err != nil {
		return store.Document{}, err
	}
	return w.Memory.ReadDocument(ctx, name, etag)
}

func (w *world) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	if err := w.call(ctx, &w.writes); err != nil {
		return store.Revision{}, err
	}
	return w.Memory.WriteDocument(ctx, name, etag, body)
}

// calls are those so far.
func (w *world) calls() (reads, writes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads, w.writes
}

// change changes the world under its lock.
func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// Write makes the world the log of its replicas.
func (w *world) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(b)
}

// put writes a document as a stranger would.
func (w *world) put(text string) {
	w.t.Helper()
	d, _ := w.Memory.ReadDocument(w.t.Context(), "demo/.replicas", "")
	if _, err := w.Memory.WriteDocument(w.t.Context(), "demo/.replicas", d.ETag, []byte(text)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) text() string {
	d, err := w.Memory.ReadDocument(w.t.Context(), "demo/.replicas", "")
	if err != nil {
		return err.Error()
	}
	return string(d.Body)
}

// A replica is one beacon.
type replica struct {
	*presence.Beacon
	w    *world
	kill func() // it writes nothing more
	stop func() // in an orderly way

	mu   sync.Mutex
	self presence.Self
}

func (r *replica) is(health string, reasons ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.self.Health, r.self.Reasons = health, reasons
}

func (w *world) config(name string) presence.Config {
	work := presence.Work{"beat": {Schedule: "@every 1m in UTC"}}
	return presence.Config{App: "demo", Replica: name, Store: w, Every: 2 * time.Minute, Work: work, Log: slog.New(slog.NewTextHandler(w, nil)),
		Self: func() presence.Self { return presence.Self{Health: "ok", Version: "v1", Work: work.Digest()} }}
}

// start starts a replica.
func (w *world) start(name string) *replica {
	r := &replica{w: w, self: presence.Self{Health: "ok", Version: "v1", Skew: 1.5}}
	c := w.config(name)
	r.self.Work = c.Work.Digest()
	c.Self = func() presence.Self { r.mu.Lock(); defer r.mu.Unlock(); return r.self }
	r.Beacon = presence.New(c)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { r.Run(ctx) })
	r.kill = func() { cancel(); all.Wait() }
	r.stop = func() { r.kill(); r.Leave() }
	w.t.Cleanup(r.kill)
	return r
}

// states are those of all replicas, as a reader sees them now.
func (w *world) states() string {
	w.t.Helper()
	reader := presence.Reader{Store: &w.Memory, App: "demo"}
	r, err := reader.Read(w.t.Context())
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(r.Doc.Replicas)) {
		one := r.Doc.Replicas[name]
		all = append(all, fmt.Sprintf("%s %s %s", name, r.State(one), strings.Join(append([]string{one.Health}, one.Reasons...), ": ")))
	}
	return strings.Join(all, ", ")
}

func (w *world) want(what, want string) {
	w.t.Helper()
	if got := w.states(); got != want {
		w.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// Three replicas: one is killed, one leaves. A replica is alone if all others have left or tell nothing any more, and not while
// one of them may be up. A process that ends does not say that its successor of the same name has left.
func TestReplicasThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, long := &world{t: t}, strings.Repeat("a", 300)
		want := func(what, states string, alone bool) {
			t.Helper()
			w.want(what, strings.ReplaceAll(states, "a ", long[:200]+" "))
			r, err := (&presence.Reader{Store: &w.Memory, App: "demo"}).Read(t.Context())
			if err != nil || r.Alone(long) != alone {
				t.Errorf("%s: alone is %t, %v", what, !alone, err)
			}
		}
		want("before the start", "", true)
		a := w.start(long)
		time.Sleep(3 * time.Second)
		want("after the start", "a up ok", true)
		b, c := w.start("b"), w.start("c")
		time.Sleep(time.Hour)
		want("an hour later", "a up ok, b up ok, c up ok", false)
		c.stop()
		want("one has left", "a up ok, b up ok, c left ok", false)
		b.kill()
		want("the other was killed just now", "a up ok, b up ok, c left ok", false)
		time.Sleep(4 * time.Minute)
		want("after a while", "a up ok, b silent ok, c left ok", true)
		c = w.start("c")
		time.Sleep(3 * time.Second)
		next := w.start("c")
		time.Sleep(3 * time.Second)
		c.stop()
		want("two starts under the same name", "a up ok, b silent ok, c up ok", false)
		time.Sleep(time.Hour)
		want("an hour after its end", "a up ok, c up ok", false)
		a.stop()
		next.stop()
		time.Sleep(100 * time.Hour)
		want("no replica is up", "a left ok, c left ok", true)
	})
}

// A change of the health is written soon, and not each time if it changes again and again.
func TestHealthIsWrittenSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		a := w.start("a")
		time.Sleep(30 * time.Second)
		a.is("stuck", "stuck: beat")
		time.Sleep(6 * time.Second)
		w.want("stuck", "a up stuck: stuck: beat")
		_, before := w.calls()
		for i := range 20 {
			a.is([]string{"ok", "stuck"}[i%2])
			time.Sleep(5 * time.Second)
		}
		if _, writes := w.calls(); writes-before > 8 {
			t.Errorf("got %d writes in 100 s", writes-before)
		}
		a.is("ok")
		time.Sleep(20 * time.Second)
		w.want("well again", "a up ok")
	})
}

// The page on costs tells how many calls a replica makes.
func TestCallsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		w.start("a")
		time.Sleep(24 * time.Hour)
		reads, writes := w.calls()
		page, err := os.ReadFile("../../../docs/costs.md")
		if m := regexp.MustCompile(`: ([\d,]+) reads and as many writes a month`).FindSubmatch(page); err != nil || m == nil {
			t.Fatalf("the page on costs tells no number: %v", err)
		} else if told, _ := strconv.Atoi(strings.ReplaceAll(string(m[1]), ",", "")); reads != writes || math.Abs(float64(30*writes-told)) > 0.02*float64(told) {
			t.Errorf("got %d reads and %d writes in a day, the page says %d in a month", reads, writes, told)
		}
	})
}

// An outage stops nothing, costs few calls and is not logged; after it the replica is shown
// again soon. A stop during one takes two seconds at most.
func TestOutageOfReplicasIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		a := w.start("a")
		time.Sleep(10 * time.Second)
		w.change(func() { w.down = errors.New("no route") })
		before, _ := w.calls()
		time.Sleep(time.Hour)
		if reads, _ := w.calls(); reads-before < 100 || reads-before > 400 {
			t.Errorf("got %d calls in an hour of an outage", reads-before)
		}
		w.want("in the outage", "a silent ok")
		w.change(func() { w.down, w.slow = nil, time.Minute }) // a store that hangs
		time.Sleep(10 * time.Minute)
		w.change(func() { w.slow = 0 })
		time.Sleep(20 * time.Second)
		w.want("after it", "a up ok")
		w.change(func() { w.slow = time.Hour })
		begin := time.Now()
		a.stop()
		if took := time.Since(begin); took > 2*time.Second || w.log.String() != "" {
			t.Errorf("the stop took %s, and the log is %s", took, w.log.String())
		}
	})
}

// A document of another program is left alone, and the log says so once. Once an operator has corrected it, the replica is shown.
func TestForeignDocumentIsKept(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": "\x00\xff<html>", "a list": "[]", "nothing of ours": "{}", "newer": `{"schema":2,"app":"demo"}`, "of another app": `{"schema":1,"app":"other"}`,
		"a far time":    `{"schema":1,"app":"demo","replicas":{"x":{"seen":"9999-12-31T23:59:59-23:00","every":120}}}`,
		"no time":       `{"schema":1,"app":"demo","replicas":{"x":{"every":120}}}`,
		"no beat":       `{"schema":1,"app":"demo","replicas":{"x":{"seen":"2000-01-01T00:00:00Z"}}}`,
		"a long beat":   `{"schema":1,"app":"demo","replicas":{"x":{"seen":"2000-01-01T00:00:00Z","every":9223372036854775807}}}`,
		"a wrong clock": `{"schema":1,"app":"demo","replicas":{"x":{"seen":"2000-01-01T00:00:00Z","every":120,"skew":1e300}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t}
				w.put(text)
				a := w.start("a")
				time.Sleep(time.Hour)
				if got := w.text(); got != text {
					t.Errorf("got the document %s", got)
				}
				if _, err := (&presence.Reader{Store: w, App: "demo"}).Read(t.Context()); !errors.Is(err, presence.ErrForeign) {
					t.Errorf("got %v", err)
				}
				w.put(`{"schema":1,"app":"demo"}`)
				time.Sleep(2 * time.Minute)
				w.want("corrected", "a up ok")
				a.stop()
				if got := strings.Count(w.log.String(), "correct or delete the document"); got != 1 {
					t.Errorf("the log has %d lines: %s", got, w.log.String())
				}
			})
		})
	}
}

// Long and odd texts neither make the document too long nor keep a replica out of it.
func TestLongTextsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		var others []string
		for i := range 300 {
			others = append(others, fmt.Sprintf(`"%03d":{"seen":"2000-01-01T00:00:00Z","every":120,"health":"%s"}`, i, strings.Repeat("<", 3400)))
		}
		w.put(`{"schema":1,"app":"demo","replicas":{` + strings.Join(others, ",") + `},"work":{"x":{"beat":{"schedule":"unused"}}}}`)
		a := w.start(strings.Repeat("\x01\u2028<é", 100))
		a.is("degraded", slices.Repeat([]string{strings.Repeat("\u2028", 500)}, 100)...)
		time.Sleep(3 * time.Second)
		r, err := (&presence.Reader{Store: w, App: "demo"}).Read(t.Context())
		if err != nil || len(r.Doc.Replicas) != 200 || len(r.Doc.Work) != 1 || r.Doc.Work["x"] != nil {
			t.Fatalf("got %d replicas, %d programs, %v", len(r.Doc.Replicas), len(r.Doc.Work), err)
		}
		found := false
		for name, one := range r.Doc.Replicas {
			if one.Health == "degraded" {
				found = true
				if len(name) > 200 || len(one.Reasons) != 8 || len(one.Reasons[0]) > 100 {
					t.Errorf("got %q: %+v", name, one)
				}
			}
		}
		if !found || len(w.text()) > store.MaxDocument {
			t.Errorf("found: %t, in %d bytes", found, len(w.text()))
		}
		w = &world{t: t}
		c := w.config("a") // of thousands of jobs the digest is told alone
		for i := range 10_000 {
			c.Work[fmt.Sprint("job-", i)] = presence.Settings{Schedule: "@hourly in UTC"}
		}
		presence.New(c).Pass(t.Context())
		w.want("many jobs", "a up ok")
		if got := len(w.text()); got > 1000 {
			t.Errorf("the document has %d bytes", got)
		}
	})
}

// Fifty replicas that write at the same time, again and again, are all shown.
func TestStormOfWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, slow: 20 * time.Millisecond}
		for i := range 50 {
			w.start(fmt.Sprintf("r%02d", i))
		}
		time.Sleep(2 * time.Minute)
		for range 20 {
			if got := strings.Count(w.states(), " up ok"); got != 50 {
				t.Fatalf("got %d replicas that are up: %s", got, w.states())
			}
			time.Sleep(time.Minute)
		}
	})
}

// A program that a platform wakes up writes in its passes alone.
func TestWokenReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, slow: 10 * time.Millisecond}
		c := w.config("a")
		c.Woken = true
		b := presence.New(c)
		for range 60 {
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() { b.Pass(t.Context()) })
			}
			both.Wait()
			time.Sleep(time.Minute)
		}
		if _, writes := w.calls(); writes < 25 || writes > 60 {
			t.Errorf("got %d writes in an hour", writes)
		}
		w.want("woken each minute", "a up ok")
		time.Sleep(30 * time.Minute)
		w.want("not woken", "a asleep ok")
		b.Leave()
		w.want("stopped", "a left ok")
	})
}
