package otel_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/telemetry"
	"github.com/soloist-go/soloist/host/otel"
)

// A receiver is a collector that keeps what it gets. Its fields are for reading once all is sent.
type receiver struct {
	*httptest.Server

	mu       sync.Mutex
	requests []*http.Request
	raw      []byte
	spans    []*tracepb.Span
	metrics  map[string]*metricspb.Metric
	refusals []int // the answers to the next requests
}

// receive starts a collector and makes the environment ask for it. It has to be called
// outside of a bubble.
func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{metrics: map[string]*metricspb.Metric{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Connection", "close") // in a bubble, time stands still while a connection waits
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests = append(r.requests, q)
		if len(r.refusals) > 0 {
			w.Header().Set("Location", q.URL.Path) // of a redirection
			w.WriteHeader(r.refusals[0])
			r.refusals = r.refusals[1:]
			return
		}
		if err := r.take(q); err != nil {
			t.Errorf("%s: %v", q.URL.Path, err)
		}
	}))
	t.Cleanup(r.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	return r
}

func (r *receiver) take(q *http.Request) error {
	body := io.Reader(q.Body)
	if q.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body = z
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	r.raw = append(r.raw, b...)
	var traces tracepb.TracesData
	var metrics metricspb.MetricsData
	switch q.URL.Path {
	case "/v1/traces":
		err = proto.Unmarshal(b, &traces)
	case "/v1/metrics":
		err = proto.Unmarshal(b, &metrics)
	default:
		err = fmt.Errorf("no such path")
	}
	for _, of := range traces.ResourceSpans {
		for _, s := range of.ScopeSpans {
			r.spans = append(r.spans, s.Spans...)
		}
	}
	for _, of := range metrics.ResourceMetrics {
		for _, s := range of.ScopeMetrics {
			for _, m := range s.Metrics {
				r.metrics[m.Name] = m
			}
		}
	}
	return err
}

// span returns the only span of that name.
func (r *receiver) span(t *testing.T, name string) *tracepb.Span {
	t.Helper()
	all := r.named(name)
	if len(all) != 1 {
		t.Fatalf("got %d spans %s, want one, in %v", len(all), name, r.spans)
	}
	return all[0]
}

func (r *receiver) named(name string) []*tracepb.Span {
	return slices.DeleteFunc(slices.Clone(r.spans), func(s *tracepb.Span) bool { return s.Name != name })
}

func TestMetricsGoToACollector(t *testing.T) {
	r := receive(t)
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=open%20sesame, x-tenant=demo")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	busy(t).Close()
	runs, took := r.metrics["soloist.runs"].GetSum(), r.metrics["soloist.run.duration"]
	var failed int64
	for _, p := range runs.GetDataPoints() {
		failed += p.GetAsInt()
	}
	if failed != 1 || !runs.IsMonotonic {
		t.Errorf("got %v, want one run", runs)
	}
	if points := took.GetHistogram().GetDataPoints(); len(points) != 1 || points[0].Count != 1 ||
		len(points[0].BucketCounts) != len(points[0].ExplicitBounds)+1 || took.Unit != "s" {
		t.Errorf("got %v, want one run", took)
	}
	if points := r.metrics["soloist.job.failures"].GetGauge().GetDataPoints(); len(points) != 1 || points[0].Attributes[0].Value.GetStringValue() != "report" {
		t.Errorf("got the failures of %d jobs, want one", len(points))
	}
	header := r.requests[0].Header
	if header.Get("Api-Key") != "open sesame" || header.Get("X-Tenant") != "demo" || header.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("got the headers %v", header)
	}
	if !strings.Contains(string(r.raw), "deployment.environment.name") || !strings.Contains(string(r.raw), "service.name") ||
		!strings.Contains(string(r.raw), "v1.2.3") {
		t.Errorf("the resource is not told")
	}
	if len(r.spans) > 0 {
		t.Errorf("got %d spans, want none", len(r.spans))
	}
}

// What a busy collector refuses is sent again. A refusal that would come again is not repeated, and headers with keys follow
// no redirection.
func TestRefusedSendings(t *testing.T) {
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	for code, want := range map[int]int{503: 4, 400: 1, 401: 1, 307: 1} {
		r := receive(t)
		r.refusals = slices.Repeat([]int{code}, 3)
		synctest.Test(t, func(t *testing.T) {
			s := program()
			m := open(t, s)
			runOnce(t, s, m, nil)
			m.Close()
		})
		if sent := len(r.named("report")) == 1; len(r.requests) != want || sent != (want == 4) {
			t.Errorf("%d: got %d requests, want %d; was sent: %t", code, len(r.requests), want, sent)
		}
	}
}

// logging is open with a log that can be read.
func logging(t *testing.T, s *soloist.Scheduler, hurry time.Duration) (*telemetry.Telemetry, *strings.Builder) {
	t.Helper()
	var log strings.Builder
	return telemetry.Open(s, "v1.2.3", slog.New(slog.NewTextHandler(&log, nil)), otel.Patient(hurry)), &log
}

// What the environment asks for and cannot have is told by name, and stops no program:
// platforms set these variables for all programs alike.
func TestSettingsOfACollector(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"", ""},
		{"OTEL_TRACES_EXPORTER=none OTEL_METRICS_EXPORTER=none OTEL_EXPORTER_OTLP_ENDPOINT=nonsense", ""},
		{"OTEL_SDK_DISABLED=true OTEL_EXPORTER_OTLP_ENDPOINT=nonsense", ""},
		{"OTEL_METRICS_EXPORTER=prometheus", ""},
		{"OTEL_TRACES_EXPORTER=zipkin", `OTEL_TRACES_EXPORTER is "zipkin": want otlp or none`},
		{"OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=grpc", `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc": want http/protobuf`},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json", `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is "http/json": want http/protobuf`},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=secret-host:4318", "OTEL_EXPORTER_OTLP_ENDPOINT (not shown) is no URL"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=ftp://secret@host", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT (not shown) is no URL"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h OTEL_EXPORTER_OTLP_TIMEOUT=10s", `OTEL_EXPORTER_OTLP_TIMEOUT is "10s": want a number of milliseconds`},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h OTEL_EXPORTER_OTLP_COMPRESSION=zstd", `OTEL_EXPORTER_OTLP_COMPRESSION is "zstd": want gzip or none`},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h OTEL_EXPORTER_OTLP_HEADERS=secret", "OTEL_EXPORTER_OTLP_HEADERS (not shown) is malformed"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h OTEL_EXPORTER_OTLP_HEADERS=key=secret%0A", "OTEL_EXPORTER_OTLP_HEADERS (not shown) is malformed"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=https://h OTEL_EXPORTER_OTLP_CERTIFICATE=nowhere.pem", "OTEL_EXPORTER_OTLP_CERTIFICATE: stat nowhere.pem"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=https://h OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=nowhere.pem", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY: open nowhere.pem"},
	} {
		t.Run(c.env, func(t *testing.T) {
			for pair := range strings.FieldsSeq(c.env) {
				name, value, _ := strings.Cut(pair, "=")
				t.Setenv(name, value)
			}
			m, log := logging(t, program(), 1) // there is no such collector
			m.Close()
			got := strings.ReplaceAll(log.String(), `\"`, `"`)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Contains(got, "secret") {
				t.Errorf("got %s, want %q, and no secret", got, c.want)
			}
		})
	}
}

// A collector that does not answer, or is gone, keeps no run waiting, and the end not for long. An error of the network has
// the URL in it, in which a key may be.
func TestDeadCollectorDelaysNothing(t *testing.T) {
	hang := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	gone := httptest.NewServer(nil)
	defer silent.Close()
	defer close(hang)
	gone.Close()
	for _, one := range []struct {
		url, timeout string
		hurry        time.Duration
		told         bool
	}{
		{silent.URL, "86400000", 50 * time.Millisecond, false}, // only Close ends it
		{gone.URL, "200", time.Minute, true},
	} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", one.url)
		t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", one.url+"/v1/traces?key=secret")
		t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", one.timeout)
		s := program()
		m, log := logging(t, s, one.hurry)
		for range 600 { // more than the queue has room for
			runOnce(t, s, m, nil)
		}
		m.Close() // returns
		if got := log.String(); strings.Contains(got, "secret") || one.told && !strings.Contains(got, "cannot be reached") {
			t.Errorf("got %s", got)
		}
	}
}

// The end of a collector, and its return, are each told once. Its URL may have a key in it.
func TestOutageOfACollectorIsToldOnce(t *testing.T) {
	r := receive(t)
	r.refusals = slices.Repeat([]int{500}, 2)
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", r.URL+"/v1/traces?key=secret")
	var text string
	synctest.Test(t, func(t *testing.T) {
		s := program()
		m, log := logging(t, s, time.Minute)
		for range 4 {
			runOnce(t, s, m, nil)
			time.Sleep(time.Minute) // a batch
		}
		m.Close()
		text = log.String()
	})
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "500") || !strings.Contains(lines[1], "reached again") || strings.Contains(text, "secret") {
		t.Errorf("got %q", lines)
	}
}
