package otel_test

import (
	"context"
	"fmt"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/host/otel"
)

// The program sends metrics and traces once OTEL_EXPORTER_OTLP_ENDPOINT names a collector.
func ExampleExport() {
	p := host.Program{
		Work:      []soloist.Work{soloist.Job{Name: "report", Schedule: "@daily", Do: nothing}},
		Telemetry: otel.Export,
		Store:     &local.Memory{},
		Name:      "shop",
		Args:      []string{"validate"},
	}
	fmt.Println("exit code", p.Run(context.Background()))
	// Output:
	// ok: 1 job, app shop on *local.Memory
	// exit code 0
}
