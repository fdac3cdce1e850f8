package host_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A stop that cuts off a run is no success: the log names what runs.
func TestStopThatCutsOffRunFails(t *testing.T) {
	inRealTime(t)
	began, release := make(chan struct{}), make(chan struct{})
	code, log := stopUnder(t, new(local.Memory), soloist.Job{Do: func(context.Context, *soloist.Run) error {
		close(began)
		<-release // it ignores the end of its context
		return nil
	}}, began)
	wantCode(t, <-code, 1)
	close(release)
	if got := (<-log).Error; !strings.Contains(got, "jobs that run: beat") {
		t.Errorf("got the error %q, want the job that runs", got)
	}
}

// The outcome of a run whose lease is longer than SOLOIST_LEASE is written in the
// time that its own lease gives.
func TestStopWaitsForLongestLease(t *testing.T) {
	inRealTime(t)
	backend := newGated(new(local.Memory), nil)
	began := make(chan struct{})
	code, _ := stopUnder(t, backend, soloist.Job{Lease: 30 * time.Second, Do: func(ctx context.Context, _ *soloist.Run) error {
		close(began)
		<-ctx.Done()
		backend.away(1500 * time.Millisecond) // more than grace and SOLOIST_LEASE
		return context.Cause(ctx)
	}}, began)
	wantCode(t, <-code, 0)
	if got := lastOutcome(t, backend); got.Status != store.Abandoned || got.Reason != "stopped" {
		t.Errorf("got the outcome %+v, want abandoned, as the run was stopped", got)
	}
}

// stopUnder runs the job once in Functions and stops the program under the run.
func stopUnder(t *testing.T, backend store.Store, job soloist.Job, began <-chan struct{}) (code <-chan int, last <-chan message) {
	t.Helper()
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_GRACE=0s", "SOLOIST_LEASE=1s")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	job.Name, job.Schedule = "beat", "@every 1h"
	log := &lastError{last: make(chan message, 1)}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		c, err := host.Serve(ctx, host.Program{Name: "demo", Stdout: log, Store: backend, Work: []soloist.Work{job}}, ln)
		if err != nil {
			t.Error(err)
		}
		done <- c
	}()
	go func() {
		if resp, err := http.Post("http://"+ln.Addr().String()+"/beat", "application/json", strings.NewReader(byHTTP)); err == nil {
			resp.Body.Close()
		}
	}()
	<-began
	stop()
	return done, log.last
}

// lastError keeps the line of the log that tells why the program stopped.
type lastError struct{ last chan message }

func (l *lastError) Write(b []byte) (int, error) {
	var m message
	if json.Unmarshal(b, &m) == nil && m.Msg == "stopped" {
		l.last <- m
	}
	return len(b), nil
}
