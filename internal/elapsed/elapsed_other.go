//go:build !linux

package elapsed

import "time"

func suspended() time.Duration { return 0 }

// Boot returns an empty id: this system does not report when it started.
func Boot() (time.Duration, string) { return 0, "" }
