package functions

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
)

// patience is the stay; half of an invocation's time for runs, if that is less.
func patience(a *app.App, limits Limits) time.Duration {
	stay := a.Settings.Patience()
	if limits.Run > 0 {
		stay = min(stay, limits.Run/2)
	}
	return stay
}

// hearMessage logs a message that is not from this app. The jobs are served anyway, and the host deletes the message.
func hearMessage(a *app.App, text string) {
	a.Alarm.Taken(text)
	var m struct{ App string }
	if text == "" || json.Unmarshal([]byte(text), &m) == nil && m.App == a.Settings.App {
		return
	}
	a.Log.Warn("a message in the queue of alarms is not an alarm of this app: give each app a queue of its own (SOLOIST_ALARM_QUEUE)",
		"message", fmt.Sprintf("%+.100q", text), "app", m.App)
}
