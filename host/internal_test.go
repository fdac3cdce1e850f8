package host

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/host/internal/web"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A failing job is red, and its row stays in line with the others.
func TestStatusInColour(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	var out strings.Builder
	a := &app.App{Console: app.Console{Stdout: &out, Terminal: true}, Now: time.Now, Scheduler: &soloist.Scheduler{}}
	new(statusCommand).print(a, a.Console, 80, []view.Job{{Name: "a", State: view.Idle}, {Name: "b", State: view.Failing, Failures: 3}}, nil, nil)
	rows := strings.Split(strings.NewReplacer("\x1b[31m", "", "\x1b[39m", "", "\x1b[0m", "").Replace(out.String()), "\n")
	at := func(name string) int {
		i := slices.IndexFunc(rows, func(row string) bool { return strings.HasPrefix(row, name+" ") })
		return strings.Index(rows[i], "  -  ")
	}
	if !strings.Contains(out.String(), "\x1b[31mfailing x3\x1b[0m") || at("a") != at("b") {
		t.Errorf("got %q", out.String())
	}
}

// On a terminal a status takes the place of the one before, without a flicker: only
// the first erases the screen.
func TestWatchRedrawsTerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	var out strings.Builder
	a := &app.App{Console: app.Console{Stdout: &out, Terminal: true}, Now: time.Now, Scheduler: &soloist.Scheduler{}, Place: "a store"}
	s := &screen{a: a, command: new(statusCommand)}
	for range 2 {
		if !s.show([]view.Job{{Name: "beat", Kind: "singleton"}}, nil) {
			t.Fatal("not shown")
		}
	}
	frames := strings.Split(out.String(), "\x1b[H")
	if len(frames) != 3 || frames[0] != "\x1b[2J" {
		t.Fatalf("got %q, want two frames", out.String())
	}
	for _, line := range strings.SplitAfter(strings.TrimSuffix(frames[2], "\x1b[J"), "\n") {
		if line != "" && !strings.HasSuffix(line, "\x1b[K\n") {
			t.Errorf("got the line %q: what was in it before stays", line)
		}
	}
	if !strings.HasSuffix(frames[2], "\x1b[J") || !strings.Contains(frames[2], "(singleton)") {
		t.Errorf("got %q", frames[2])
	}
}

// A deadEnd is a log that blocks until it is opened.
type deadEnd chan struct{}

func (deadEnd) Enabled(context.Context, slog.Level) bool { return true }

func (d deadEnd) Handle(context.Context, slog.Record) error { <-d; return nil }

func (d deadEnd) WithAttrs([]slog.Attr) slog.Handler { return d }

func (d deadEnd) WithGroup(string) slog.Handler { return d }

// quiet is a listener without a connection, until it is closed.
type quiet chan struct{}

func (q quiet) Accept() (net.Conn, error) { <-q; return nil, net.ErrClosed }

func (q quiet) Close() error { close(q); return nil }

func (q quiet) Addr() net.Addr { return &net.TCPAddr{} }

// A log that has blocked since before the start keeps serve neither from its
// jobs nor from its answers nor from its end, and fails the liveness probe.
func TestBlockedLogDoesNotHoldUpServe(t *testing.T) {
	t.Setenv("SOLOIST_STORAGE", "")
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
		wantTold(t, a, "/healthz", 200, "accepted no line since", false)
		time.Sleep(time.Minute)
		wantTold(t, a, "/healthz", 503, "accepted no line since", true)
		stop()
		begin := time.Now()
		if code, took := <-ended, time.Since(begin); code != exitOK || took > 20*time.Second {
			t.Errorf("got code %d, %s after the stop", code, took)
		}
		close(dead)
	})
}

// A log that nobody reads does not keep the process.
func TestBlockedLogDoesNotHoldUpExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead, begin, code := make(deadEnd), time.Now(), 0
		endOverrun(slog.New(dead), func(c int) { code = c }, "still", soloist.ErrStalled)
		if took := time.Since(begin); code != exitOverrun || took > time.Second {
			t.Errorf("got code %d after %s", code, took)
		}
		close(dead)
	})
}

// The liveness probe fails once the log has blocked for three minutes, whether the program's own lines wait or only those of
// the scheduler. A receiver of events that blocks is no reason for a restart, since the jobs run.
func TestBlockedReceiversAreTold(t *testing.T) {
	const log, events = "accepted no line since", "Events function has not returned since"
	for _, test := range []struct {
		says  string
		code  int // while it blocks
		block func(a *app.App, dead deadEnd)
	}{
		{log, 503, func(a *app.App, dead deadEnd) { a.Scheduler.Logger = slog.New(dead) }},
		{log, 503, func(a *app.App, dead deadEnd) {
			a.SetLog(slog.New(dead))
			a.Scheduler.Logger = slog.New(slog.DiscardHandler)
			a.Log.Info("listening")
		}},
		{events, 200, func(a *app.App, dead deadEnd) { a.Scheduler.Events = func(event.Event) { <-dead } }},
	} {
		synctest.Test(t, func(t *testing.T) {
			dead, done := make(deadEnd), make(chan error, 1)
			work := soloist.Job{Name: "work", Schedule: "* * * * *", Do: func(context.Context, *soloist.Run) error { return nil }}
			a := &app.App{Now: time.Now, Serves: true, Scheduler: &soloist.Scheduler{Store: &local.Memory{}, Jobs: []soloist.Job{work}}}
			a.SetLog(slog.New(slog.DiscardHandler))
			test.block(a, dead)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { done <- a.Scheduler.Run(ctx) }()
			time.AfterFunc(310*time.Second, func() { close(dead) })
			for i, code := range []int{200, test.code, 200} {
				time.Sleep(150 * time.Second)
				wantTold(t, a, "/healthz", code, test.says, i == 1)
				wantTold(t, a, "/api/v1/app", 200, test.says, i == 1 && code != 200)
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// get has the app answer a request.
func get(a *app.App, path string) *httptest.ResponseRecorder {
	cache := web.NewCache(a.Statuses, nil, nil)
	defer cache.Wait()
	r := httptest.NewRecorder()
	web.Routes(a, web.NewGuard(&a.Settings, a.Log), cache, nil).ServeHTTP(r, httptest.NewRequest("GET", path, nil))
	return r
}

// wantTold wants an answer to have a text, or not to have it.
func wantTold(t *testing.T, a *app.App, path string, code int, text string, want bool) {
	t.Helper()
	if got := get(a, path); got.Code != code || strings.Contains(got.Body.String(), text) != want {
		t.Errorf("%s says %d %s, want %d and %q in it: %t", path, got.Code, got.Body, code, text, want)
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
			begin := time.Now()
			for _, days := range []time.Duration{9, 12} {
				ctx, cancel := context.WithDeadline(t.Context(), begin.Add(days*24*time.Hour))
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

// A token for changes is made where only this machine reaches the program, its records are in a directory, and no token is set.
func TestTokenIsMadeOnDevelopersMachine(t *testing.T) {
	dir := &local.Dir{Path: t.TempDir()}
	for _, tt := range []struct {
		name        string
		addr        string
		store       store.Store
		read, admin string
		platform    string
		want        bool
	}{
		{"a developer's machine", "127.0.0.1:0", dir, "", "", "", true},
		{"the setting's store", "localhost:0", *dir, "", "", "", true},
		{"all addresses", ":0", dir, "", "", "", false},
		{"a store that others share", "127.0.0.1:0", &local.Memory{}, "", "", "", false},
		{"a read token", "127.0.0.1:0", dir, "read-me-and-no-more", "", "", false},
		{"an admin token", "127.0.0.1:0", dir, "", "open-sesame-to-1800", "", false},
		{"a platform", "127.0.0.1:0", dir, "", "", "KUBERNETES_SERVICE_HOST", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.platform != "" {
				t.Setenv(tt.platform, "10.0.0.1")
			}
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			a := &app.App{Store: tt.store, Log: slog.New(slog.DiscardHandler)}
			a.Settings.Addr, a.Settings.ReadToken, a.Settings.AdminToken = tt.addr, tt.read, tt.admin
			if got := ownAddress(a, web.NewGuard(&a.Settings, a.Log), ln); (got != "") != tt.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
