package app

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// An Alarm is what wakes the app up when no replica is: ByQueue, or nothing.
type Alarm string

// ByQueue is a message in Azure Queue Storage.
const ByQueue Alarm = "queue"

// AlarmFunction is the function that Functions calls with an alarm. While alarms are on, no job can have its name.
const AlarmFunction = "alarm"

// UnmarshalText takes queue.
func (k *Alarm) UnmarshalText(text []byte) error {
	if *k = Alarm(text); *k != ByQueue {
		return errors.New("not queue")
	}
	return nil
}

// checkStay returns what is wrong with lead and stay together.
func (s *Settings) checkStay() error {
	if s.Stay == 0 || s.Stay >= s.AlarmLead {
		return nil
	}
	lead, stay := s.AlarmLead, s.Stay
	s.AlarmLead = stay
	return fmt.Errorf("SOLOIST_ALARM_LEAD is %s and SOLOIST_STAY %s, so a replica would end before the tick that it was woken up for: want a stay of at least the lead, or 0", lead, stay)
}

// idle warns of settings that have no effect.
func (s *Settings) idle() (warnings []string) {
	for _, name := range []string{"SOLOIST_ALARM_QUEUE", "SOLOIST_ALARM_LEAD", "SOLOIST_STAY"} {
		if s.Alarm == "" && os.Getenv(name) != "" {
			warnings = append(warnings, name+" has no effect without SOLOIST_ALARM=queue")
		}
	}
	return warnings
}

// mostQueue is how long the name of a queue can be that Functions reads: it adds "-poison" to that.
const mostQueue = 63 - len("-poison")

var hyphens = regexp.MustCompile(`-+`)

// isQueue reports whether a queue can have the name: by the rule for containers, except for its length.
func isQueue(name string) bool { return isContainer(name) && len(name) <= mostQueue }

// queueOf is the queue of an app. Names of queues are shorter than names of apps and cannot have two hyphens in a row:
// a name that has to be changed ends in a hash, so that no two apps get one queue.
func queueOf(app string) string {
	const end = "-alarm"
	if name := app + end; isQueue(name) {
		return name
	}
	sum := sha256.Sum256([]byte(app))
	hash := "-" + hex.EncodeToString(sum[:4])
	name := strings.Trim(hyphens.ReplaceAllString(app, "-"), "-")
	name = strings.TrimRight(name[:min(len(name), mostQueue-len(hash)-len(end))], "-")
	return strings.TrimLeft(name+hash+end, "-")
}

// Patience is how long a replica waits for the next tick before it leaves the tick to the alarm. It is longer
// than the lead: the app may just have been woken up for that tick, by a message whose time is truncated to a second.
func (s *Settings) Patience() time.Duration { return max(s.Stay, s.AlarmLead+5*time.Second) }
