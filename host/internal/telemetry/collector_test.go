package telemetry_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A receiver is a collector that keeps what it gets.
type receiver struct {
	*httptest.Server

	mu       sync.Mutex
	requests []*http.Request
	raw      []byte
	spans    []*tracepb.Span
	metrics  []*metricspb.Metric
	refusals []int // the answers to the next requests
}

// receive starts a collector and makes the environment ask for it. It has to be called
// outside of a bubble.
func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Connection", "close") // in a bubble, time stands still while a connection waits
		if code := r.take(t, q); code != 200 {
			w.Header().Set("Location", q.URL.Path) // of a redirection
			w.WriteHeader(code)
		}
	}))
	t.Cleanup(r.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	return r
}

func (r *receiver) take(t *testing.T, q *http.Request) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, q)
	if len(r.refusals) > 0 {
		code := r.refusals[0]
		r.refusals = r.refusals[1:]
		return code
	}
	body := io.Reader(q.Body)
	if q.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			t.Error(err)
			return 400
		}
		body = z
	}
	b, err := io.ReadAll(body)
	if err == nil {
		r.raw = append(r.raw, b...)
		err = r.decode(q.URL.Path, b)
	}
	if err != nil {
		t.Error(err)
		return 400
	}
	return 200
}

func (r *receiver) decode(path string, b []byte) error {
	switch path {
	case "/v1/traces":
		var all tracepb.TracesData
		if err := proto.Unmarshal(b, &all); err != nil {
			return err
		}
		for _, of := range all.ResourceSpans {
			for _, s := range of.ScopeSpans {
				r.spans = append(r.spans, s.Spans...)
			}
		}
	case "/v1/metrics":
		var all metricspb.MetricsData
		if err := proto.Unmarshal(b, &all); err != nil {
			return err
		}
		for _, of := range all.ResourceMetrics {
			for _, s := range of.ScopeMetrics {
				r.metrics = append(r.metrics, s.Metrics...)
			}
		}
	default:
		return fmt.Errorf("got a request for %s", path)
	}
	return nil
}

// span returns the only span of that name.
func (r *receiver) span(t *testing.T, name string) *tracepb.Span {
	t.Helper()
	all := r.named(name)
	if len(all) != 1 {
		t.Fatalf("got %d spans %s, want one, in %v", len(all), name, r.names())
	}
	return all[0]
}

func (r *receiver) named(name string) []*tracepb.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.spans), func(s *tracepb.Span) bool { return s.Name != name })
}

func (r *receiver) names() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

func TestMetricsGoToACollector(t *testing.T) {
	r := receive(t)
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=open%20sesame, x-tenant=demo")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	m := busy(t)
	m.Close()
	found := map[string]*metricspb.Metric{}
	for _, one := range r.metrics {
		found[one.Name] = one
	}
	var failed int64
	for _, p := range found["soloist.runs"].GetSum().GetDataPoints() {
		failed += p.GetAsInt()
	}
	if failed != 1 || !found["soloist.runs"].GetSum().IsMonotonic {
		t.Errorf("got %v, want one run", found["soloist.runs"])
	}
	took := found["soloist.run.duration"].GetHistogram().GetDataPoints()
	if len(took) != 1 || took[0].Count != 1 || len(took[0].BucketCounts) != len(took[0].ExplicitBounds)+1 || found["soloist.run.duration"].Unit != "s" {
		t.Errorf("got %v, want one run", found["soloist.run.duration"])
	}
	if points := found["soloist.job.failures"].GetGauge().GetDataPoints(); len(points) != 1 || points[0].Attributes[0].Value.GetStringValue() != "report" {
		t.Errorf("got the failures of %d jobs, want one", len(points))
	}
	header := r.requests[0].Header
	if header.Get("Api-Key") != "open sesame" || header.Get("X-Tenant") != "demo" || header.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("got the headers %v", header)
	}
	if !strings.Contains(string(r.raw), "deployment.environment.name") || !strings.Contains(string(r.raw), "service.name") {
		t.Errorf("the resource is not told")
	}
	if len(r.spans) > 0 {
		t.Errorf("got %d spans, want none", len(r.spans))
	}
}

// What a busy collector refuses is sent again.
func TestBusyCollectorIsAskedAgain(t *testing.T) {
	r := receive(t)
	r.refusals = []int{503}
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	synctest.Test(t, func(t *testing.T) {
		s := program()
		m := open(t, s)
		runOnce(t, s, m, nil)
		m.Close()
	})
	r.span(t, "report")
	if len(r.requests) != 2 {
		t.Errorf("got %d requests, want 2", len(r.requests))
	}
}

// A refusal that would come again is not repeated, and headers with keys follow no
// redirection.
func TestRefusalIsNotRepeated(t *testing.T) {
	for _, code := range []int{400, 401, 307} {
		r := receive(t)
		r.refusals = []int{code, code, code}
		t.Setenv("OTEL_METRICS_EXPORTER", "none")
		synctest.Test(t, func(t *testing.T) {
			s := program()
			m := open(t, s)
			runOnce(t, s, m, nil)
			m.Close()
		})
		if len(r.requests) != 1 {
			t.Errorf("%d: got %d requests, want one", code, len(r.requests))
		}
	}
}
