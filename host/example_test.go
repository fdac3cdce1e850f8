package host_test

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// reporting is the job of the examples.
var reporting = soloist.Job{
	Name:     "report",
	Schedule: "30 6 * * 1-5",
	TimeZone: "Europe/Berlin",
	Timeout:  20 * time.Minute,
	Do: func(ctx context.Context, run *soloist.Run) error {
		run.Log.Info("reporting", "id", run.ID())
		return nil
	},
}

// A program's main function is one call:
//
//	func main() { host.Main(reporting) }
//
// Main ends the process with the code that Run returns. This is what the command
// "validate" prints.
func ExampleMain() {
	p := host.Program{Work: []soloist.Work{reporting}, Name: "reports", Args: []string{"validate"}}
	fmt.Println("exit code", p.Run(context.Background()))
	// Output:
	// ok: 1 job, app reports on directory .soloist
	// exit code 0
}

// A test of a program can bring its own store and clock. This is what the
// command "next" prints.
func ExampleProgram_Run() {
	p := host.Program{
		Work:  []soloist.Work{soloist.Job{Name: "report", Schedule: "30 6 * * 1-5", Do: reporting.Do}},
		Store: &local.Memory{},
		Args:  []string{"next", "-n", "2"},
		Now:   func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) },
	}
	fmt.Println("exit code", p.Run(context.Background()))
	// Output:
	// report: at 06:30 on Monday to Friday, UTC
	// text: CRON_TZ=UTC 30 6 * * 1-5
	//
	// TICK                  FROM NOW
	// 2026-11-23 06:30:00Z  in 42h
	// 2026-11-24 06:30:00Z  in 2d18h
	// exit code 0
}
