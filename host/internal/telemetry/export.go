package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
)

// An Exporter sends what is measured to a collector. The module host/otel has one: what it needs takes longer to compile than
// a program without it.
type Exporter func(Source) Export

// A Source is what is measured.
type Source struct {
	Scheduler *soloist.Scheduler // its jobs may be wrapped
	Version   string             // of the program; empty: not known
	Log       *slog.Logger
	Gauges    func(context.Context, Observe) // calls it with each gauge as it is now
}

// Observe takes the value of a gauge.
type Observe func(m *Metric, v float64, l Labels)

// An Export is what an exporter has begun.
type Export struct {
	Metrics     Metrics // nil: they are not sent
	Traces      Traces  // nil: there are none
	MakeDefault func()  // makes what a job measures with OpenTelemetry itself go the same way
	Close       func()  // sends what has not been sent
}

// Metrics take what has happened.
type Metrics interface {
	Add(m *Metric, n int64, l Labels)
	Record(m *Metric, seconds float64, l Labels)
}

// Traces take what belongs to runs.
type Traces interface {
	Event(e event.Event)
	// Called takes a call to the store without a lease, Lease returns what takes those under one of a job.
	Called(ctx context.Context, c Call)
	Lease(job string) func(context.Context, Call)
}

// A Call is one call to the store.
type Call struct {
	Op, Result string
	Start, End time.Time
	Record     []byte // of a write
}

// IsAsked reports whether the environment asks for a collector of METRICS or TRACES.
func IsAsked(signal string) (bool, error) {
	name := "OTEL_" + signal + "_EXPORTER"
	exporters := strings.Split(os.Getenv(name), ",")
	switch {
	case strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true"):
		return false, nil
	case slices.Contains(exporters, "otlp"):
		return true, nil
	case exporters[0] == "":
		return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != "", nil
	case exporters[0] == "none" || signal == "METRICS" && exporters[0] == "prometheus": // which are at /metrics anyway
		return false, nil
	}
	return false, fmt.Errorf("%s is %.40q: want otlp or none", name, os.Getenv(name))
}

// NoExporter is the [Exporter] of a program that names none.
func NoExporter(s Source) Export {
	for _, signal := range []string{"METRICS", "TRACES"} {
		if asked, err := IsAsked(signal); asked || err != nil {
			s.Log.Warn("the environment asks for a collector, and this program sends to none: import github.com/soloist-go/soloist/host/otel " +
				"and set Telemetry of host.Program to otel.Export, or set OTEL_SDK_DISABLED=true")
			break
		}
	}
	return Export{MakeDefault: func() {}, Close: func() {}}
}
