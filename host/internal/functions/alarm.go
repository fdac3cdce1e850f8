package functions

import (
	"encoding/json"
	"fmt"
	"strings"
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

// alarms reports whether messages of a queue wake the app up, in place of a timer for each job.
func (b *Bundle) alarms() bool { return b.app.Settings.Alarm == app.ByQueue }

// daily is the timer of the function tick where alarms are on: the net under them, for a message that is lost.
const daily = "0 17 3 * * *"

// planAlarm decides which functions there are where alarms are on.
func (b *Bundle) planAlarm() {
	b.addTimer(tickFunction, daily, "once a day, in case an alarm is lost", fixedDelay())
	alarm := Function{Name: alarmFunction, Why: "called by a message in the queue " + b.app.Settings.AlarmQueue}
	b.add(alarm, b.alarmTrigger(), nil)
	stay := b.app.Settings.Patience()
	for _, j := range b.app.Scheduler.Jobs {
		if j.EveryReplica {
			b.warnings = append(b.warnings, "job "+j.Name+" runs on each replica, and no alarm wakes one up for it: here it runs only when another job is due")
			continue
		}
		if oftener(j, stay, b.app.Now()) {
			b.warnings = append(b.warnings, fmt.Sprintf("job %s has ticks more often than every %s, the stay: an instance is up nearly all the time, and the alarm saves nothing", j.Name, stay))
		}
	}
	if text := b.app.Settings.Storage; strings.HasPrefix(text, "http") {
		b.warnings = append(b.warnings, "SOLOIST_STORAGE is a URL, which a trigger cannot use: the function alarm takes the account of AzureWebJobsStorage, so that has to be the same one")
	}
}

// alarmTrigger has a message of the queue call the function
// (https://learn.microsoft.com/azure/azure-functions/functions-bindings-storage-queue-trigger). Its connection is the name of
// an app setting, or the beginning of several ones of an identity.
func (b *Bundle) alarmTrigger() object {
	connection := "AzureWebJobsStorage"
	if strings.Contains(b.app.Settings.Storage, "=") && !strings.HasPrefix(b.app.Settings.Storage, "http") { // a connection string
		connection = "SOLOIST_STORAGE"
	}
	return binding("queueTrigger", alarmFunction, object{"queueName": b.app.Settings.AlarmQueue, "connection": connection})
}

// extensionBundle has the queue trigger, which unlike the timer is no part of the host
// (https://learn.microsoft.com/azure/azure-functions/extension-bundles).
var extensionBundle = object{"id": "Microsoft.Azure.Functions.ExtensionBundle", "version": "[4.0.0, 5.0.0)"}

// queueOptions are the options of the trigger
// (https://learn.microsoft.com/azure/azure-functions/functions-bindings-storage-queue#host-json). One message at a time, as
// each call serves all jobs. The host repeats a call that failed a minute later, for an hour; after that it moves
// the message to a poison queue, and only the daily timer is left.
var queueOptions = object{"maxPollingInterval": hostSpan(15 * time.Second), "visibilityTimeout": hostSpan(time.Minute),
	"batchSize": 1, "newBatchThreshold": 0, "maxDequeueCount": 60, "messageEncoding": "base64"}

// Frequent are the jobs for which an alarm saves nothing: their ticks are nearer
// to each other than a replica waits for.
func Frequent(a *app.App) (jobs []string) {
	for _, j := range a.Scheduler.Jobs {
		if !j.EveryReplica && oftener(j, a.Settings.Patience(), a.Now()) {
			jobs = append(jobs, j.Name)
		}
	}
	return jobs
}
