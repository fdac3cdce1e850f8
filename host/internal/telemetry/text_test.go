package telemetry_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// What the environment says of the program comes in labels that Prometheus can read.
func TestTargetIsLabelled(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "team=te%22am%5Cx%0A,1a=2,a.b=1,a_b=2,k__v=3,x%C3%A9=%FF")
	lines := scrape(t, open(t, program()))
	i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "target_info{") })
	want := `target_info{a_b="1;2",k_v="3",key_1a="2",service_instance_id="r1",service_name="demo",team="te\"am\\x\n",telemetry_sdk_language="go",`
	if i < 0 || !strings.HasPrefix(lines[i], want) || !strings.HasSuffix(lines[i], `"} 1`) || strings.ToValidUTF8(lines[i], "") != lines[i] {
		t.Errorf("got %s\nwant %s", lines[i], want)
	}
}

// Each bucket counts what the smaller ones do, too.
func TestHistogramAddsUp(t *testing.T) {
	m := open(t, program())
	for _, took := range []time.Duration{50 * time.Millisecond, 2 * time.Second, 48 * time.Hour} {
		m.Event(event.Event{Kind: event.Ended, Job: "report", Took: took, Outcome: store.Outcome{Status: store.Succeeded}})
	}
	wantLines(t, scrape(t, m), []string{
		`# TYPE soloist_run_duration_seconds histogram`,
		`soloist_run_duration_seconds_bucket{job_name="report",le="0.1"} 1`,
		`soloist_run_duration_seconds_bucket{job_name="report",le="1"} 1`,
		`soloist_run_duration_seconds_bucket{job_name="report",le="5"} 2`,
		`soloist_run_duration_seconds_bucket{job_name="report",le="86400"} 2`,
		`soloist_run_duration_seconds_bucket{job_name="report",le="+Inf"} 3`,
		`soloist_run_duration_seconds_sum{job_name="report"} 172802.05`,
		`soloist_run_duration_seconds_count{job_name="report"} 3`,
	})
}

// The metrics come in the order of their names, and series in that of their labels, so that two
// scrapes can be compared.
func TestScrapeHasAnOrder(t *testing.T) {
	lines := scrape(t, busy(t))
	var names []string
	for _, line := range lines {
		if name, ok := strings.CutPrefix(line, "# HELP "); ok {
			names = append(names, strings.Fields(name)[0])
		}
	}
	runs := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.HasPrefix(line, "soloist_runs_total{") })
	if !slices.IsSorted(names) || len(names) < 15 || !slices.IsSorted(runs) || len(runs) != 17 {
		t.Errorf("got %q, %q", names, runs)
	}
}

// A scraper that can read gzip gets it.
func TestScrapeIsCompressed(t *testing.T) {
	m := open(t, program())
	plain := soloists(strings.Join(scrape(t, m), "\n") + "\n")
	for accept, want := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "": false, "br": false, "gzip;q=0": false, "gzip; q=0.0": false} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil)
		r.Header.Set("Accept-Encoding", accept)
		m.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("%q: compressed is %t", accept, got)
			continue
		}
		text := io.Reader(w.Body)
		if want {
			z, err := gzip.NewReader(text)
			if err != nil {
				t.Fatal(err)
			}
			text = z
		}
		if got, err := io.ReadAll(text); err != nil || soloists(string(got)) != plain {
			t.Errorf("%q: got %.100s, %v", accept, got, err)
		}
		if got := w.Header().Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
			t.Errorf("%q: got the type %s", accept, got)
		}
	}
}

// A scrape reads the records once, however many jobs and metrics there are.
func TestScrapeLooksOnce(t *testing.T) {
	m, looks := open(t, program()), 0
	m.Watch(func(context.Context) []soloist.JobStatus { looks++; return nil })
	if scrape(t, m); looks != 1 {
		t.Errorf("looked %d times", looks)
	}
}

// soloists is a scrape from the metrics of this module on: those of the process before it change
// all the time.
func soloists(text string) string { return text[strings.Index(text, "# HELP soloist_"):] }
