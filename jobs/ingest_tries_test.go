package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A server that accepts and says nothing, and a store that hangs.
func TestIngestTimeLimits(t *testing.T) {
	for want, test := range map[string]struct {
		run     ingestRun
		network roundTrip
	}{
		"GET http://source/v1/pages/1: no complete answer within 10s": {&ingestWorld{}, silent},
		"save the position: not done within 10s":                      {&hangingSave{}, fine},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			if err := runIngestWith(t.Context(), test.run, test.network); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
			if took := time.Since(began); took != ingestLimit {
				t.Errorf("%s: took %v, want %v", want, took, ingestLimit)
			}
		})
	}
}

type hangingSave struct{ ingestWorld }

func (*hangingSave) Save(ctx context.Context, _ any) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestIngestRetryAfter(t *testing.T) {
	const date = "Sat, 21 Nov 2026 02:30:00 GMT"
	tests := []struct {
		after, date string
		want        time.Duration
	}{
		{"", date, 0},
		{"0", date, 0},
		{"7", "", 7 * time.Second},
		{"600", "", 10 * time.Minute},
		{"601", "", 10 * time.Minute},
		{"99999999999999999999", "", 10 * time.Minute},
		{"-1", date, 0},
		{"soon", date, 0},
		{"Sat, 21 Nov 2026 02:30:42 GMT", date, 42 * time.Second},
		{"Sat, 21 Nov 2026 02:29:42 GMT", date, 0},
		{"Sat, 21 Nov 2027 02:30:42 GMT", date, 10 * time.Minute},
		{"Sat, 21 Nov 2026 02:30:42 GMT", "", 0}, // by what clock?
	}
	for _, test := range tests {
		h := http.Header{}
		h.Set("Retry-After", test.after)
		h.Set("Date", test.date)
		if got := ingestRetryAfter(h); got != test.want {
			t.Errorf("%q at %q: got %v, want %v", test.after, test.date, got, test.want)
		}
	}
}

// scheduleIngest has the job run by a scheduler, in virtual time.
func scheduleIngest(t *testing.T, backend store.Store, d time.Duration, f roundTrip) {
	t.Helper()
	job, client := ingest(), ingestClient()
	client.Transport = f
	env := environment("INGEST_SOURCE", "http://source", "INGEST_SINK", "http://sink")
	job.Do = func(ctx context.Context, run *soloist.Run) error {
		return runIngest(ctx, env, client, run, run.Token, run.Log)
	}
	s := soloist.Scheduler{App: "test", Store: backend, Jobs: []soloist.Job{job}, Logger: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// The whole job over a store: a later run, of another process, goes on where
// the one before has ended, with a larger token.
func TestIngestOverAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend, pages := new(local.Memory), 2
		var got []string
		var last string // token
		network := func(req *http.Request) (*http.Response, error) {
			token := req.Header.Get("Soloist-Token")
			if token != last {
				got = append(got, "run")
			}
			if len(token) < len(last) || len(token) == len(last) && token < last {
				t.Errorf("token %s after %s", token, last)
			}
			last = token
			got = append(got, req.Method+" "+req.URL.Path)
			if req.Method == http.MethodGet && strings.TrimPrefix(req.URL.Path, "/pages/") > fmt.Sprint(pages) {
				return &http.Response{StatusCode: 404, Body: http.NoBody}, nil
			}
			return answer(http.NoBody), nil
		}
		scheduleIngest(t, backend, 90*time.Second, network)
		pages = 3
		scheduleIngest(t, backend, time.Minute, network)
		want := []string{
			"run", "GET /pages/1", "PUT /pages/1", "GET /pages/2", "PUT /pages/2", "GET /pages/3",
			"run", "GET /pages/3", "PUT /pages/3", "GET /pages/4",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// What is worth another try gets one soon, and no sooner than the server wants.
func TestIngestTries(t *testing.T) {
	tests := []struct {
		what    string
		status  int
		after   string
		want    int           // requests under one tick
		soonest time.Duration // between two of them
	}{
		{"GET", 503, "", 3, 2500 * time.Millisecond},
		{"GET", 503, "11", 3, 11 * time.Second},
		{"PUT", 429, "11", 3, 11 * time.Second},
		{"PUT", 408, "", 3, 2500 * time.Millisecond},
		{"GET", 400, "", 1, 0},
		{"GET", 401, "", 1, 0},
		{"PUT", 302, "", 1, 0},
		{"PUT", 409, "", 1, 0},
		{"PUT", 412, "", 1, 0},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.what, " ", test.status, " ", test.after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []time.Time
				begin := time.Now()
				until := begin.Truncate(time.Minute).Add(119 * time.Second) // one tick
				scheduleIngest(t, new(local.Memory), until.Sub(begin), func(req *http.Request) (*http.Response, error) {
					if req.Method != test.what {
						return answer(http.NoBody), nil
					}
					asked = append(asked, time.Now())
					h := http.Header{}
					h.Set("Retry-After", test.after)
					return &http.Response{StatusCode: test.status, Header: h, Body: http.NoBody}, nil
				})
				if len(asked) != test.want {
					t.Fatalf("asked %d times, want %d", len(asked), test.want)
				}
				for i, at := range asked[1:] {
					if d := at.Sub(asked[i]); d < test.soonest {
						t.Errorf("asked again after %v, want %v or more", d, test.soonest)
					}
				}
			})
		})
	}
}

func TestIngestIsValid(t *testing.T) {
	job := ingest()
	job.Lease = 15 * time.Second
	s := soloist.Scheduler{App: "test", Store: new(local.Memory), Jobs: []soloist.Job{job}}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	// A page at its slowest is no stall.
	if job.HeartbeatTimeout < 3*ingestLimit+job.Lease {
		t.Errorf("HeartbeatTimeout is %s", job.HeartbeatTimeout)
	}
}
