package host

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
)

// A deadEnd is a log that blocks until it is opened.
type deadEnd chan struct{}

func (deadEnd) Enabled(context.Context, slog.Level) bool    { return true }
func (d deadEnd) Handle(context.Context, slog.Record) error { <-d; return nil }
func (d deadEnd) WithAttrs([]slog.Attr) slog.Handler        { return d }
func (d deadEnd) WithGroup(string) slog.Handler             { return d }

// The liveness probe fails once the log has blocked for three minutes, and the
// page says so.
func TestALogThatBlocksFailsTheLivenessProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := make(deadEnd)
		s := &soloist.Scheduler{Store: &local.Memory{}, Logger: slog.New(dead), Jobs: []soloist.Job{{
			Name: "work", Schedule: "* * * * *", Do: func(context.Context, *soloist.Run) error { return nil }}}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Run(ctx) }()
		a := &app{Program: &Program{Now: time.Now}, sched: s}
		for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
			time.Sleep(150 * time.Second)
			got := httptest.NewRecorder()
			a.healthz(got, httptest.NewRequest("GET", "/healthz", nil))
			told := strings.Contains(got.Body.String(), "taken no line since")
			if got.Code != want || told != (want != http.StatusOK) {
				t.Errorf("got %d %s, want %d", got.Code, got.Body, want)
			}
		}
		if p := a.show(news{}); !strings.Contains(p.Log, "taken no line since") {
			t.Errorf("the page says %q", p.Log)
		}
		close(dead)
		cancel()
		<-done
	})
}
