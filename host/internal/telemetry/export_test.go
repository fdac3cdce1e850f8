package telemetry

import "time"

// Hurry sets how long Close waits for a collector.
func (t *Telemetry) Hurry(d time.Duration) { t.patience = d }
