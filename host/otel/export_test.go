package otel

import (
	"time"

	"github.com/soloist-go/soloist/host/internal/telemetry"
)

// Patient is [Export] that waits so long for a collector at the end.
func Patient(d time.Duration) telemetry.Exporter {
	return func(s telemetry.Source) telemetry.Export { return export(s, d) }
}
