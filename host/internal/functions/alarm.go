package functions

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
)

// patience is the stay; half of what an invocation has for runs, if that is less.
func patience(a *app.App, limits Limits) time.Duration {
	stay := a.Settings.Patience()
	if limits.Run > 0 {
		stay = min(stay, limits.Run/2)
	}
	return stay
}

// leadSpare is how much longer than the lead an invocation can wait: a message comes early by up to a second.
const leadSpare = 5 * time.Second

// fitLead shortens the lead to what an invocation can wait for. Else each one would put a message that is visible at once,
// until the tick is near.
func fitLead(a *app.App, limits Limits) {
	if most := max(0, patience(a, limits)-leadSpare); a.Alarm != nil && a.Settings.AlarmLead > most {
		a.SetLead(most)
	}
}

// hearMessage says so if a message is none of this app's. The jobs are looked after all the same, and the host deletes it.
func hearMessage(a *app.App, text string) {
	a.Alarm.Taken(text)
	var m struct{ App string }
	if text == "" || json.Unmarshal([]byte(text), &m) == nil && m.App == a.Settings.App {
		return
	}
	a.Log.Warn("a message in the queue of alarms is not an alarm of this app: give each app a queue of its own (SOLOIST_ALARM_QUEUE)",
		"message", fmt.Sprintf("%+.100q", text), "app", m.App)
}
