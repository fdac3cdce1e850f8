package functions_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/internal/proctest"
)

// This test binary is a user's program when it is started again.
func TestMain(m *testing.M) {
	if _, ok := proctest.Order(); ok {
		program()
		return
	}
	proctest.Main(m, 16)
}

// scheduleEnv is the schedule of the program's jobs, takesEnv how long a run
// takes.
const (
	scheduleEnv = "TEST_SCHEDULE"
	takesEnv    = "TEST_TAKES"
)

func program() {
	schedule := os.Getenv(scheduleEnv)
	host.Main(
		soloist.Job{Name: "work", Schedule: schedule, Do: work},
		soloist.Job{Name: "again", Schedule: schedule, Interrupted: soloist.Rerun, Do: work},
		soloist.Job{Name: "broke", Schedule: schedule, Do: func(context.Context, *soloist.Run) error { return errors.New("no paper") }},
		soloist.Job{Name: "long", Schedule: "@yearly", Timeout: time.Hour, Do: work},
		soloist.Job{Name: "deaf", Schedule: "@yearly", HeartbeatTimeout: time.Second, Do: deaf},
		soloist.Singleton{Name: "leader", Do: work},
	)
}

// work takes its time, but not when it is repeated, and says so.
func work(ctx context.Context, run *soloist.Run) error {
	takes, _ := time.ParseDuration(os.Getenv(takesEnv))
	if run.Attempt > 1 {
		takes = 0
	}
	fmt.Println("begin", run.ID(), run.Attempt)
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		fmt.Println("ended", run.ID(), context.Cause(ctx))
		return ctx.Err()
	}
	fmt.Println("done", run.ID())
	return nil
}

// deaf goes on whatever happens to its context.
func deaf(_ context.Context, run *soloist.Run) error {
	fmt.Println("begin", run.ID(), run.Attempt)
	select {}
}
