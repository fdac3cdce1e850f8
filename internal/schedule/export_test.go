package schedule

import "time"

// WarningsAt gives a test its own now.
func (s *Schedule) WarningsAt(now time.Time) []string { return s.warnings(now) }
