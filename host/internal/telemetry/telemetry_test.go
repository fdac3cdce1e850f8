package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/telemetry"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func nothing(context.Context, *soloist.Run) error { return nil }

// program is a scheduler of two jobs, one of each replica and a singleton, at noon.
func program() *soloist.Scheduler {
	return &soloist.Scheduler{
		App: "demo", Replica: "r1", Store: &local.Memory{}, Now: func() time.Time { return noon },
		Jobs: []soloist.Job{
			{Name: "report", Schedule: "@hourly", Do: nothing},
			{Name: "sweep", Schedule: "@hourly", Do: nothing},
			{Name: "cache", Schedule: "@hourly", Do: nothing, EveryReplica: true},
		},
		Singletons: []soloist.Singleton{{Name: "leader", Do: nothing}},
	}
}

func open(t *testing.T, s *soloist.Scheduler) *telemetry.Telemetry {
	t.Helper()
	m := telemetry.Open(s, "v1.2.3", slog.New(slog.NewTextHandler(t.Output(), nil)), nil)
	t.Cleanup(m.Close)
	return m
}

// scrape returns the lines of /metrics.
func scrape(t *testing.T, m *telemetry.Telemetry) []string {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("got %d, %s", w.Code, w.Body)
	}
	return strings.Split(strings.TrimSpace(w.Body.String()), "\n")
}

// wantLines wants each of these lines, and none that begins with a word of without.
func wantLines(t *testing.T, got []string, want []string, without ...string) {
	t.Helper()
	all := "\n" + strings.Join(got, "\n") + "\n"
	for _, line := range want {
		if !strings.Contains(all, "\n"+line+"\n") {
			t.Errorf("got no %s", line)
		}
	}
	for _, start := range without {
		if strings.Contains(all, "\n"+start) {
			t.Errorf("got a line that begins with %s", start)
		}
	}
	if t.Failed() {
		t.Log(all)
	}
}

func TestEventsAreCounted(t *testing.T) {
	m := open(t, program())
	tick := noon.Add(-time.Minute)
	ended := func(s event.Status, took time.Duration) event.Event {
		return event.Event{Kind: event.Ended, Job: "report", Run: event.Run{Tick: tick, Token: 7}, Took: took, Outcome: event.Outcome{Status: s, Reason: "password is hunter2"}}
	}
	for _, e := range []event.Event{
		{Kind: event.Started, Job: "report", Run: event.Run{Tick: tick, Try: 1}, Time: tick.Add(2 * time.Second)},
		{Kind: event.Started, Job: "report", Run: event.Run{Tick: tick, Try: 2}, Time: tick.Add(time.Minute)},
		{Kind: event.Started, Job: "report", Run: event.Run{Tick: tick, Try: 1, Request: "by-hand"}},
		{Kind: event.Started, Job: "leader", Run: event.Run{Try: 1}},
		ended(event.Succeeded, 3*time.Second),
		ended(event.Failed, time.Second),
		ended(event.Failed, time.Second),
		{Kind: event.Settled, Job: "report", Outcome: event.Outcome{Status: event.Missed, From: noon.Add(-time.Hour), Count: 40}},
		{Kind: event.Settled, Job: "report", Outcome: event.Outcome{Status: event.Missed, From: noon.Add(-time.Hour)}},
		{Kind: event.Settled, Job: "report", Outcome: event.Outcome{Status: event.Abandoned}},
		{Kind: event.Renewed, Job: "report", Took: 30 * time.Millisecond},
		{Kind: event.Lost, Job: "report", Err: errors.New("gone")},
		{Kind: event.TookOver, Job: "report", Former: event.Former{Replica: "r2"}, Note: "died"},
		{Kind: event.TookOver, Job: "report", Former: event.Former{Replica: "r2"}, Note: "https://account/?sig=secret"},
		{Kind: event.Dropped, Count: 12},
	} {
		m.Event(e)
	}
	got := scrape(t, m)
	wantLines(t, got, []string{
		`soloist_runs_total{job_name="report",outcome="succeeded"} 1`,
		`soloist_runs_total{job_name="report",outcome="failed"} 2`,
		`soloist_ticks_settled_total{job_name="report",outcome="missed"} 41`,
		`soloist_ticks_settled_total{job_name="report",outcome="abandoned"} 1`,
		`soloist_run_duration_seconds_sum{job_name="report"} 5`,
		`soloist_run_duration_seconds_count{job_name="report"} 3`,
		`soloist_run_start_delay_seconds_sum{job_name="report"} 2`,
		`soloist_run_start_delay_seconds_count{job_name="report"} 1`,
		`soloist_lease_renewal_duration_seconds_bucket{job_name="report",le="0.025"} 0`,
		`soloist_lease_renewal_duration_seconds_bucket{job_name="report",le="0.05"} 1`,
		`soloist_leases_lost_total{job_name="report"} 1`,
		`soloist_takeovers_total{job_name="report",reason="died"} 1`,
		`soloist_takeovers_total{job_name="report",reason="other"} 1`,
		`soloist_events_dropped_total 12`,
		`# TYPE soloist_runs_total counter`,
		`# TYPE soloist_run_duration_seconds histogram`,
		`# HELP soloist_runs_total Runs that ended on this replica, by outcome.`,
	}, `soloist_run_start_delay_seconds_count{job_name="leader"}`)
	for _, secret := range []string{"hunter2", "sig=", "gone", "r2"} {
		if strings.Contains(strings.Join(got, "\n"), secret) {
			t.Errorf("the metrics tell %q", secret)
		}
	}
}

// A bucket has all that lasted at most as long as its limit says, a limit itself included.
func TestHistogram(t *testing.T) {
	m := open(t, program())
	for _, ms := range []time.Duration{1, 25, 30, 60_000} {
		m.Event(event.Event{Kind: event.Renewed, Job: "report", Took: ms * time.Millisecond})
	}
	var want []string
	for le, n := range map[string]int{"0.0025": 1, "0.01": 1, "0.025": 2, "0.05": 3, "10": 3, "+Inf": 4} {
		want = append(want, fmt.Sprintf(`soloist_lease_renewal_duration_seconds_bucket{job_name="report",le="%s"} %d`, le, n))
	}
	wantLines(t, scrape(t, m), append(want, `soloist_lease_renewal_duration_seconds_count{job_name="report"} 4`,
		`soloist_lease_renewal_duration_seconds_sum{job_name="report"} 60.056`))
}

// A series that begins with its first failure has no increase that an alert could see.
func TestCountersStartAtZero(t *testing.T) {
	wantLines(t, scrape(t, open(t, program())), []string{
		`soloist_runs_total{job_name="report",outcome="failed"} 0`,
		`soloist_runs_total{job_name="cache",outcome="failed"} 0`,
		`soloist_runs_total{job_name="report",outcome="abandoned"} 0`,
		`soloist_ticks_settled_total{job_name="report",outcome="missed"} 0`,
		`soloist_runs_total{job_name="leader",outcome="stalled"} 0`,
		`soloist_leases_lost_total{job_name="leader"} 0`,
		`soloist_takeovers_total{job_name="report",reason="stalled"} 0`,
		`soloist_takeovers_total{job_name="leader",reason="stalled"} 0`,
		`soloist_events_dropped_total 0`,
	}, `soloist_ticks_settled_total{job_name="cache"`, `soloist_takeovers_total{job_name="cache"`)
}

func TestGaugesOfRecords(t *testing.T) {
	m := open(t, program())
	never := scrape(t, m)
	wantLines(t, never, []string{`soloist_running{job_name="leader"} 0`, `soloist_storage_up 0`}, "soloist_job_failures", "soloist_tick_overdue_seconds")
	history := []event.Outcome{{Status: event.Failed, End: noon}, {Status: event.Succeeded, End: noon.Add(-time.Hour)}, {Status: event.Succeeded}}
	all := []desk.Status{
		{Name: "report", Lease: store.Available, Next: noon.Add(-90 * time.Second), Record: record.Record{Failures: 43, History: history}},
		{Name: "sweep", Next: noon.Add(time.Hour), Paused: true}, // has no record yet
		{Name: "cache", EveryReplica: true, Next: noon.Add(-time.Hour)},
		{Name: "leader", Singleton: true, Lease: store.Leased, Record: record.Record{Failures: 1, Succeeded: noon}},
	}
	m.Watch(func(context.Context) []desk.Status { return all })
	wantLines(t, scrape(t, m), []string{
		`soloist_job_failures{job_name="report"} 43`,
		`soloist_tick_overdue_seconds{job_name="report"} 90`,
		`soloist_job_last_success_timestamp_seconds{job_name="report"} 1.7953452e+09`,
		`soloist_job_paused{job_name="report"} 0`,
		`soloist_job_failures{job_name="sweep"} 0`,
		`soloist_tick_overdue_seconds{job_name="sweep"} 0`,
		`soloist_job_last_success_timestamp_seconds{job_name="sweep"} 0`,
		`soloist_job_paused{job_name="sweep"} 1`,
		`soloist_job_last_success_timestamp_seconds{job_name="leader"} 1.7953488e+09`,
	}, `soloist_job_failures{job_name="cache"}`, `soloist_tick_overdue_seconds{job_name="cache"}`, `soloist_tick_overdue_seconds{job_name="leader"}`)

	// Ticks that come due during a run wait for its end. One whose runner died is overdue.
	all[0].Lease, all[0].Record.Run.Status = store.Leased, event.Running
	wantLines(t, scrape(t, m), []string{`soloist_tick_overdue_seconds{job_name="report"} 0`})
	all[0].Lease = store.Expired
	wantLines(t, scrape(t, m), []string{`soloist_tick_overdue_seconds{job_name="report"} 90`})
	all[0].Err = errors.New("the record cannot be read")
	wantLines(t, scrape(t, m), []string{`soloist_job_failures{job_name="sweep"} 0`}, `soloist_job_failures{job_name="report"}`, `soloist_tick_overdue_seconds{job_name="report"}`)
}

// Platforms set the variables of OpenTelemetry for all programs alike: one without an exporter says what it lacks, once, and runs.
func TestProgramWithoutExporterSaysSo(t *testing.T) {
	for env, told := range map[string]bool{
		"": false,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318":                        true,
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://collector:4318":                 true,
		"OTEL_METRICS_EXPORTER=otlp":                                               true,
		"OTEL_METRICS_EXPORTER=prometheus":                                         false,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318 OTEL_SDK_DISABLED=true": false,
	} {
		t.Run(env, func(t *testing.T) {
			for pair := range strings.FieldsSeq(env) {
				name, value, _ := strings.Cut(pair, "=")
				t.Setenv(name, value)
			}
			var log strings.Builder
			m := telemetry.Open(program(), "", slog.New(slog.NewTextHandler(&log, nil)), nil)
			m.MakeDefault()
			m.Close()
			if got := strings.Count(log.String(), "import github.com/soloist-go/soloist/host/otel"); got != map[bool]int{true: 1}[told] {
				t.Errorf("got %q", log.String())
			}
		})
	}
}

// The target is named as OpenTelemetry names it, with what the environment adds. A name or a value may have anything in it.
func TestTarget(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", `deployment.environment.name=a%22b\, nonsense,service.name=other`)
	t.Setenv("OTEL_SERVICE_NAME", "mine")
	wantLines(t, scrape(t, open(t, program())), []string{
		`target_info{deployment_environment_name="a\"b\\",service_instance_id="r1",service_name="mine",service_version="v1.2.3"} 1`})
}
