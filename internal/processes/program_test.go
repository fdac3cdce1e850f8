//go:build unix

// Package processes is the smoke tests of real processes: replicas of a program over Azurite that are killed, stopped
// and replaced by a new version; the storm of chaos suspends them, too. They show that the binary obeys signals, that a real server takes its calls,
// and that what the simulation proves holds there. What they wait for may come late; they judge order and counts, and no
// time. They run each night:
//
//	SOLOIST_NIGHTLY=1 go test ./internal/processes -timeout 20m
package processes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/internal/proctest"
)

type event = proctest.Event

// An order says what a replica does. The replica is this test binary, started again.
type order struct {
	Singleton bool
	Rerun     bool
	Missed    soloist.MissedPolicy
	Takes     time.Duration // of a run whose context goes on
	Hold      string        // no run returns while this file exists
	Version   string        // prepared once before the jobs start
	Prepared  string        // directory in which a preparation leaves that it was begun
}

func TestMain(m *testing.M) {
	text, ok := proctest.Order()
	if !ok {
		proctest.Main(m, 64)
	}
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	p := o.program()
	p.Main()
}

// program is the program of a user.
func (o order) program() (p host.Program) {
	job := soloist.Job{Name: "work", Schedule: "@every 1s", Late: soloist.Late{Missed: o.Missed}, Do: o.run}
	if o.Rerun {
		job.Interrupted = soloist.Rerun
	}
	p.Work = []soloist.Work{job}
	if o.Singleton {
		p.Work = []soloist.Work{soloist.Singleton{Name: "work", Do: o.run}}
	}
	if o.Version != "" {
		p.Before = []*soloist.Once{{Name: "prepare", Key: o.Version, Retry: soloist.Retry{Backoff: time.Second}, Do: o.prepare}}
	}
	return p
}

func (o order) run(ctx context.Context, run *soloist.Run) error {
	proctest.Tell(proctest.Of("start", run))
	proctest.Pause(ctx, o.Takes)
	for o.held() {
		time.Sleep(10 * time.Millisecond)
	}
	proctest.TellEnd(run, context.Cause(ctx))
	return ctx.Err()
}

func (o order) held() bool {
	_, err := os.Stat(o.Hold)
	return err == nil
}

// prepare is what each version does once. The first attempt at v1 fails, the first attempt at v2 goes on until its
// process is killed.
func (o order) prepare(context.Context, *soloist.Run) error {
	proctest.Tell(event{What: "begin", Cause: o.Version})
	f, err := os.OpenFile(filepath.Join(o.Prepared, o.Version), os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		f.Close()
		if o.Version == "v2" {
			select {}
		}
		return errors.New("the first attempt")
	}
	proctest.Tell(event{What: "done", Cause: o.Version})
	return nil
}
