package alert

import (
	"context"
	"log/slog"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A Config is what a Notifier needs to know. All fields are needed.
type Config struct {
	App, Replica string
	Store        store.Documenter
	Webhook      *Webhook
	Failures     int // failures in a row that are an incident

	Look    func(context.Context) []soloist.JobStatus    // what the records say, from a cache
	Health  func() soloist.Health                        // of this replica
	Control func(context.Context) (store.Control, error) // what operators have ordered
	Late    func(job string) time.Duration               // how late a tick may be claimed
	Now     func() time.Time                             // the wall clock
	Elapsed func() time.Duration                         // counts the time in suspension
	Log     *slog.Logger
}
