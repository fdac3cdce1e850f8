package scenarios_test

import (
	"testing"
	"time"
)

// Connections that were not closed and do not work. That each call is bounded,
// and each run ends in time, is checked at the end of each world.
func TestHalfOpenConnections(t *testing.T) {
	for name, f := range map[string]network{
		"nothing gets through":      hang,
		"nothing comes back":        mute,
		"replies without an end":    garble(deliver, endless),
		"replies a byte a second":   garble(deliver, trickle),
		"replies that are cut off":  garble(deliver, cutOff),
		"refusals without an end":   garble(refuse(503, "ServerBusy"), endless),
		"refusals a byte a second":  garble(refuse(503, "ServerBusy"), trickle),
		"refusals that are cut off": garble(refuse(503, "ServerBusy"), cutOff),
	} {
		o := outage{fault: f, share: 1}
		if name == "replies that are cut off" {
			o.mean = 1 // a read has no body, so it gets through
		}
		each(t, name, o, time.Minute, 4*time.Second, 10*time.Minute)
	}
}
