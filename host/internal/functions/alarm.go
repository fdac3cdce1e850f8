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
