package telemetry_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/telemetry"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// BenchmarkScrape is what one scrape costs, and forty at the same time, with records that were read before. MB/scrapes is
// what is allocated for all of them.
func BenchmarkScrape(b *testing.B) {
	for _, jobs := range []int{1_000, 10_000} {
		m := recorded(b, jobs)
		for _, callers := range []int{1, 40} {
			b.Run(fmt.Sprintf("jobs=%d/callers=%d", jobs, callers), func(b *testing.B) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for b.Loop() {
					var all sync.WaitGroup
					for range callers {
						all.Go(func() { m.ServeHTTP(discarded{httptest.NewRecorder()}, httptest.NewRequest("GET", "/metrics", nil)) })
					}
					all.Wait()
				}
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/1e6, "MB/scrapes")
			})
		}
	}
}

// discarded is an answer that nobody keeps.
type discarded struct{ *httptest.ResponseRecorder }

func (discarded) Write(b []byte) (int, error) { return len(b), nil }

// recorded measures so many jobs, each of which has succeeded.
func recorded(b *testing.B, jobs int) *telemetry.Telemetry {
	s := &soloist.Scheduler{App: "demo", Replica: "r1", Store: &local.Memory{}, Now: func() time.Time { return noon }, Logger: slog.New(slog.DiscardHandler)}
	var all []soloist.JobStatus
	for i := range jobs {
		name := fmt.Sprintf("job-%05d", i)
		s.Jobs = append(s.Jobs, soloist.Job{Name: name, Schedule: "@hourly", Do: nothing})
		all = append(all, soloist.JobStatus{Name: name, Next: noon.Add(time.Hour), Record: store.Record{Succeeded: noon, Run: store.Run{Status: store.Succeeded}}})
	}
	m, err := telemetry.Open(s, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	m.Watch(func(context.Context) []soloist.JobStatus { return all })
	b.Cleanup(m.Close)
	return m
}
