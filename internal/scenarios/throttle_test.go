package scenarios_test

import (
	"fmt"
	"testing"
	"time"
)

// A service that throttles asks for a pause. A renewal has no time for one that
// is longer than its lease: that it is tried again soon, and not too often, is
// checked at the end of each world.
func TestThrottling(t *testing.T) {
	for _, status := range []int{429, 503} {
		for _, told := range []string{
			"Retry-After: 1", "Retry-After: 50", "Retry-After: 300", // as documented
			"retry-after-ms: 50000", "x-ms-retry-after-ms: 50000", // as the client library knows it too
		} {
			o := outage{fault: refuse(status, "ServerBusy", told), share: 1}
			each(t, fmt.Sprintf("%d, %s", status, told), o, time.Minute, 6*time.Second, 10*time.Minute)
		}
	}
}
