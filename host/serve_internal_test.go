package host

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/web"
	"github.com/soloist-go/soloist/host/local"
)

// A deadEnd is a log that blocks until it is opened.
type deadEnd chan struct{}

func (deadEnd) Enabled(context.Context, slog.Level) bool { return true }

func (d deadEnd) Handle(context.Context, slog.Record) error { <-d; return nil }

func (d deadEnd) WithAttrs([]slog.Attr) slog.Handler { return d }

func (d deadEnd) WithGroup(string) slog.Handler { return d }

// The liveness probe fails once the log has blocked for three minutes, and the
// page says so.
func TestBlockedLogFailsLivenessProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := make(deadEnd)
		s := &soloist.Scheduler{Store: &local.Memory{}, Logger: slog.New(dead), Jobs: []soloist.Job{{
			Name: "work", Schedule: "* * * * *", Do: func(context.Context, *soloist.Run) error { return nil }}}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Run(ctx) }()
		a := &app.App{Now: time.Now, Scheduler: s}
		for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
			time.Sleep(150 * time.Second)
			wantBlocked(t, a, want)
		}
		close(dead)
		cancel()
		<-done
	})
}

// quiet is a listener without a connection, until it is closed.
type quiet chan struct{}

func (q quiet) Accept() (net.Conn, error) { <-q; return nil, net.ErrClosed }

func (q quiet) Close() error { close(q); return nil }

func (q quiet) Addr() net.Addr { return &net.TCPAddr{} }

// A log that has blocked since before the start keeps serve neither from its
// jobs nor from its answers nor from its end, and fails the liveness probe.
func TestBlockedLogDoesNotHoldUpServe(t *testing.T) {
	for _, name := range []string{"SOLOIST_ADDR", "SOLOIST_STORAGE", "SOLOIST_APP"} {
		t.Setenv(name, "")
	}
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		p := Program{Name: "demo", Store: &local.Memory{}, Work: []soloist.Work{soloist.Job{Name: "work", Schedule: "@every 1m",
			Do: func(context.Context, *soloist.Run) error { runs.Add(1); return nil }}}}
		a, err := p.filled().open(mode{serves: true})
		if err != nil {
			t.Fatal(err)
		}
		dead, ended := make(deadEnd), make(chan int, 1)
		a.SetLog(slog.New(dead))
		ctx, stop := context.WithCancel(t.Context())
		go func() { defer a.Flush(); ended <- serveOn(ctx, a, make(quiet)) }()
		time.Sleep(150 * time.Second)
		if n := runs.Load(); n != 2 {
			t.Errorf("the job ran %d times in 150 s, want 2", n)
		}
		web.NewGuard(&a.Settings, a.Log).Refused(httptest.NewRequest("POST", "/nosuch", nil), "refused") // returns
		wantBlocked(t, a, http.StatusOK)
		time.Sleep(time.Minute)
		wantBlocked(t, a, http.StatusServiceUnavailable)
		stop()
		select {
		case code := <-ended:
			if code != exitOK {
				t.Errorf("got code %d", code)
			}
		case <-time.After(20 * time.Second):
			t.Error("serve goes on 20 s after it was stopped")
		}
		close(dead)
	})
}

// Where only the program's own lines wait, the probe and the page tell of it too.
func TestOwnLinesThatWaitAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &app.App{Now: time.Now, Scheduler: &soloist.Scheduler{Store: &local.Memory{}}, Serves: true}
		dead := make(deadEnd)
		a.SetLog(slog.New(dead))
		a.Log.Info("listening")
		time.Sleep(2 * time.Minute)
		wantBlocked(t, a, http.StatusOK)
		time.Sleep(2 * time.Minute)
		wantBlocked(t, a, http.StatusServiceUnavailable)
		close(dead)
		synctest.Wait()
		wantBlocked(t, a, http.StatusOK)
	})
}

// A receiver of events that blocks makes the replica degraded: no restart, since its jobs run.
func TestEventsThatWaitAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		a := &app.App{Now: time.Now, Serves: true, Scheduler: &soloist.Scheduler{Store: &local.Memory{}, Logger: slog.New(slog.DiscardHandler),
			Events: func(event.Event) { <-open },
			Jobs:   []soloist.Job{{Name: "work", Schedule: "@every 1m", Do: func(context.Context, *soloist.Run) error { return nil }}}}}
		a.SetLog(slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.Scheduler.Run(ctx) }()
		cache := web.NewCache(a.Scheduler.Status, nil, nil)
		defer cache.Wait()
		for _, told := range []bool{false, true, false} {
			time.Sleep(150 * time.Second)
			r := httptest.NewRecorder()
			web.Routes(a, web.NewGuard(&a.Settings, a.Log), cache, nil).ServeHTTP(r, httptest.NewRequest("GET", "/healthz", nil))
			body := r.Body.String()
			if r.Code != http.StatusOK || strings.Contains(body, `"degraded"`) != told || strings.Contains(body, "Events function has not returned since") != told {
				t.Errorf("/healthz says %d %s, want the events in it: %t", r.Code, body, told)
			}
			if told {
				close(open)
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// wantBlocked checks what probe and API say of the log.
func wantBlocked(t *testing.T, a *app.App, code int) {
	t.Helper()
	cache := web.NewCache(a.Scheduler.Status, nil, nil)
	defer cache.Wait()
	get := func(path string) *httptest.ResponseRecorder {
		r := httptest.NewRecorder()
		web.Routes(a, web.NewGuard(&a.Settings, a.Log), cache, nil).ServeHTTP(r, httptest.NewRequest("GET", path, nil))
		return r
	}
	want := code != http.StatusOK
	got := get("/healthz")
	if told := strings.Contains(got.Body.String(), "accepted no line since"); got.Code != code || told != want {
		t.Errorf("/healthz says %d %s, want %d", got.Code, got.Body, code)
	}
	if info := get("/api/v1/app").Body.String(); strings.Contains(info, "accepted no line since") != want {
		t.Errorf("/api/v1/app says %s", info)
	}
}

// A program that serves sweeps by itself, once a day, if it is told to.
func TestSweepDaily(t *testing.T) {
	for unused, want := range map[time.Duration]bool{10 * 24 * time.Hour: true, 0: false} {
		synctest.Test(t, func(t *testing.T) {
			var lines strings.Builder
			a := &app.App{Store: &local.Memory{}, Log: slog.New(slog.NewTextHandler(&lines, nil))}
			a.Settings.App, a.Settings.Sweep = "demo", unused
			l := &soloist.Lock{Name: "tenant-1", Store: a.Store, App: "demo", Logger: slog.New(slog.DiscardHandler)}
			if err := l.Do(t.Context(), func(context.Context, *soloist.Run) error { return nil }); err != nil {
				t.Fatal(err)
			}
			for _, days := range []int{9, 12} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Until(time.Date(2000, 1, 1+days, 0, 0, 0, 0, time.UTC)))
				sweepDaily(ctx, a)
				<-ctx.Done()
				cancel()
				_, err := a.Store.Read(t.Context(), "demo/0-lock-tenant-1")
				if got := errors.Is(err, fs.ErrNotExist); got != (want && days == 12) {
					t.Errorf("unused for %s: on day %d: %v", unused, days, err)
				}
			}
			if strings.Contains(lines.String(), "were removed") != want {
				t.Errorf("the log says\n%s", &lines)
			}
		})
	}
}
