//go:build unix

package web_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/web"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/record"
)

// manyJobs is the number of jobs in the benchmarks.
const manyJobs = 10_000

// emulator is the variable that makes the benchmarks use Azurite. It takes a minute to fill.
const emulator = "BENCH_AZURITE"

// A replica answers HTTP about many jobs.
type replica struct {
	app   *app.App
	store *azure.Store
	cache *web.Cache
	http.Handler
}

// BenchmarkFirstAnswer is the first request for the list of jobs: cold is that of a replica that
// has read no record yet; warm is that of one that has, some time ago. Records are young, without
// outcomes, or full, with twenty.
func BenchmarkFirstAnswer(b *testing.B) { benchmark(b, "/api/v1/jobs") }

// BenchmarkScrape is the same for the metrics.
func BenchmarkScrape(b *testing.B) { benchmark(b, "/metrics") }

// BenchmarkStrip is the last ticks of as many jobs as one answer has, on a replica that has read the records.
func BenchmarkStrip(b *testing.B) {
	ages(b, func(b *testing.B, s *azure.Store) {
		r := newReplica(b, s)
		r.cache.Prepare(b.Context())
		r.cache.Wait()
		for b.Loop() {
			r.get(b, "/api/v1/strip")
		}
	})
}

// BenchmarkOpenedPage is a page that is opened on a replica that has read the records at its
// start: the page, and the first message of its stream.
func BenchmarkOpenedPage(b *testing.B) {
	ages(b, func(b *testing.B, s *azure.Store) {
		var r *replica
		m := meter{b: b}
		for b.Loop() {
			m.rest(func() {
				r = newReplica(b, s)
				r.cache.Prepare(b.Context())
				r.cache.Wait()
			})
			r.get(b, "/")
			r.firstMessage(b)
		}
		m.report()
	})
}

// ages measures over young and over full records.
func ages(b *testing.B, f func(*testing.B, *azure.Store)) {
	b.Run("young", func(b *testing.B) { f(b, newStore(b, 0)) })
	b.Run("full", func(b *testing.B) { f(b, newStore(b, 20)) })
}

// firstMessage opens the stream, and closes it after its first message.
func (r *replica) firstMessage(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	w := &flushed{ResponseRecorder: httptest.NewRecorder(), first: cancel}
	r.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost:8080/api/v1/stream", nil).WithContext(ctx))
	if !strings.Contains(w.Body.String(), fmt.Sprintf(`"matched":%d`, manyJobs)) {
		b.Fatalf("got %d: %.200s", w.Code, w.Body)
	}
}

// flushed calls first when it is flushed.
type flushed struct {
	*httptest.ResponseRecorder
	first func()
}

func (f *flushed) Flush() { f.first() }

func (f *flushed) SetReadDeadline(time.Time) error  { return nil }
func (f *flushed) SetWriteDeadline(time.Time) error { return nil }

func benchmark(b *testing.B, path string) {
	ages(b, func(b *testing.B, s *azure.Store) {
		b.Run("cold", func(b *testing.B) {
			var r *replica
			m := meter{b: b}
			for b.Loop() {
				m.rest(func() { r = newReplica(b, s) })
				r.get(b, path)
			}
			m.report()
		})
		b.Run("warm", func(b *testing.B) {
			r := newReplica(b, s)
			r.get(b, path)
			m := meter{b: b}
			for b.Loop() {
				m.rest(func() { time.Sleep(2100 * time.Millisecond) })
				r.get(b, path)
			}
			m.report()
		})
	})
}

// get asks until the replica has read the records: on a busy machine the first answer may say
// that it has not yet.
func (r *replica) get(b *testing.B, path string) {
	for {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost:8080"+path, nil))
		if w.Code != http.StatusOK {
			b.Fatalf("got %d: %.200s", w.Code, w.Body)
		}
		r.cache.Wait()
		if !strings.Contains(w.Body.String(), "has not answered yet") {
			return
		}
	}
}

// newStore has records with so many outcomes each.
func newStore(b *testing.B, outcomes int) *azure.Store {
	c := azure.Config{ConnectionString: "AccountName=sim;AccountKey=c2VjcmV0c2VjcmV0", Transport: &replayed{}}
	if os.Getenv(emulator) != "" {
		c = azure.Config{ConnectionString: azurite.Shared(b).ConnectionString(), Container: fmt.Sprintf("full-%d-%d", outcomes, time.Now().UnixNano())}
	}
	s, err := azure.Open(c)
	if err != nil {
		b.Fatal(err)
	}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := worker; i < manyJobs; i += 8 {
				if _, err := s.Create(context.Background(), "soloist/"+nameOf(i), recordOf(b, i, outcomes)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return s
}

func nameOf(i int) string { return fmt.Sprintf("job-%05d", i) }

func recordOf(b *testing.B, i, outcomes int) []byte {
	now := time.Now().UTC().Truncate(time.Second)
	hour := now.Truncate(time.Hour)
	r := record.Record{App: "soloist", Job: nameOf(i), Created: now.Add(-48 * time.Hour), Token: now.UnixMicro(), Writer: "replica-ABCDEFGH",
		Definition: record.Definition{Since: now.Add(-48 * time.Hour)}, Watermark: hour, Run: record.Run{Status: record.Idle}}
	for n := range outcomes {
		tick := hour.Add(-time.Duration(n) * time.Hour)
		f := event.Outcome{Tick: tick, Status: event.Succeeded, Attempt: 1, Token: r.Token - int64(n), Replica: "shop--7c9f6d8b5-x2x7q", Start: tick.Add(120 * time.Millisecond), End: tick.Add(time.Duration(i%50+1) * time.Second)}
		if n == 0 {
			r.Run = record.Run{Tick: tick, Attempt: 1, Status: f.Status, Replica: f.Replica, Lease: record.Seconds(30 * time.Second), Claimed: f.Start, Finished: f.End}
			r.Succeeded, r.Counts = f.End, map[event.Status]int64{event.Succeeded: 4711, event.Missed: 3}
		}
		r.History = append(r.History, f)
	}
	text, err := r.Encode()
	if err != nil {
		b.Fatal(err)
	}
	return text
}

// newReplica has read nothing yet.
func newReplica(b *testing.B, s *azure.Store) *replica {
	var work []soloist.Work
	for i := range manyJobs {
		work = append(work, soloist.Job{Name: nameOf(i), Schedule: "@hourly", Do: func(context.Context, *soloist.Run) error { return nil }})
	}
	b.Setenv("SOLOIST_APP", "soloist")
	a, err := app.Open(app.Config{Work: work, Store: s, Now: time.Now, Replica: "replica", Serves: true, Console: app.Console{Name: "soloist", Stdout: io.Discard, Stderr: io.Discard}})
	if err = cmp.Or(err, a.Scheduler.Validate()); err != nil {
		b.Fatal(err)
	}
	cache := web.NewCache(a.Statuses, a.Control, nil)
	cache.Jobs = manyJobs
	a.Telemetry.Watch(cache.Statuses)
	guard := web.NewGuard(&a.Settings, a.Log)
	b.Cleanup(cache.Wait)
	return &replica{app: a, store: s, cache: cache, Handler: guard.Around(web.Routes(a, guard, cache, nil))}
}

// replayed is a service whose listings are made once: making one takes as long as reading it,
// and a service does that elsewhere.
type replayed struct {
	blobtest.Blob
	mu    sync.Mutex
	lists map[string]*http.Response
	texts map[string][]byte
}

func (s *replayed) Do(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("comp") != "list" {
		return s.Blob.Do(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.URL.RawQuery
	if s.lists == nil {
		s.lists, s.texts = map[string]*http.Response{}, map[string][]byte{}
	}
	if s.lists[key] == nil {
		resp, err := s.Blob.Do(r)
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		text = bytes.ReplaceAll(text, []byte("&#34;"), []byte{'"'}) // as the service writes it
		s.lists[key], s.texts[key] = resp, text
	}
	resp := *s.lists[key]
	resp.Request, resp.Body = r, io.NopCloser(bytes.NewReader(s.texts[key]))
	return &resp, nil
}

// A meter counts the time of the processors, which a busy machine does not change.
type meter struct {
	b         *testing.B
	used, out time.Duration
}

// rest does what is not measured.
func (m *meter) rest(f func()) {
	m.b.StopTimer()
	if m.out > 0 {
		m.used += cpu() - m.out
	}
	f()
	runtime.GC()
	m.out = cpu()
	m.b.StartTimer()
}

func (m *meter) report() {
	m.used += cpu() - m.out
	m.b.ReportMetric(float64(m.used.Milliseconds())/float64(m.b.N), "cpu-ms/op")
}

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
