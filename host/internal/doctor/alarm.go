package doctor

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/alarm"
)

// A peeker is a queue that counts its visible messages without receiving them.
type peeker interface {
	Visible(ctx context.Context) (int, error)
}

// farAway is how long a check's message is hidden: if it cannot be deleted, it wakes the app up once, much later.
const farAway = 6 * 24 * time.Hour

// checkAlarm looks at what wakes the app up, if the settings ask for it.
func (d *doctor) checkAlarm(wrong error) {
	if d.app.Settings.Alarm == "" {
		return
	}
	if wrong != nil || d.app.Alarm == nil {
		d.skip("queue", "the settings are not right yet")
		return
	}
	visible := -1 // not known
	if !d.step("queue", tokenTime, func(ctx context.Context) Finding {
		n, err := tryQueue(ctx, d.app.Alarm.Queue)
		if err != nil {
			return failure(d.explainQueue(err))
		}
		visible = n
		return success(fmt.Sprintf("%v: a message was put and deleted%s", d.app.Alarm.Queue, visibleWords(n)))
	}) {
		d.skip("alarm", "nothing to learn before the queue can be used")
		return
	}
	d.step("alarm", stepTime, func(ctx context.Context) Finding { return d.pending(ctx, visible) })
	d.checkRule()
}

// tryQueue puts a message and deletes it, and counts the visible ones; less than zero: the count is not known.
func tryQueue(ctx context.Context, q alarm.Queue) (visible int, err error) {
	receipt, err := q.Put(ctx, []byte("a check of doctor, which could not delete it"), farAway)
	if err != nil {
		return -1, err
	}
	if err := q.Delete(ctx, receipt); err != nil {
		return -1, err
	}
	if p, ok := q.(peeker); ok {
		return p.Visible(ctx)
	}
	return -1, nil
}

func visibleWords(n int) string {
	switch {
	case n < 0:
		return ""
	case n == 0:
		return "; none is visible, so the app may be asleep"
	}
	return fmt.Sprintf("; %s visible, so a replica is to be up", format.Plural(n, "message"))
}

// explainQueue asks the queue what its error is about.
func (d *doctor) explainQueue(err error) (text, advice string) {
	if q, ok := d.app.Alarm.Queue.(interface {
		Explain(err error) (text, advice string)
	}); ok {
		return q.Explain(err)
	}
	return err.Error(), ""
}

// pending compares the alarm that is noted with the next tick.
func (d *doctor) pending(ctx context.Context, visible int) Finding {
	due, err := d.app.Scheduler.NextDue(ctx)
	if err != nil {
		return failure("when a replica is wanted next is not known: "+err.Error(), "")
	}
	note, err := d.app.Alarm.Pending(ctx)
	now := d.app.Alarm.Now()
	const start = "start a replica once, by a deployment or with the command tick: it sets the alarm"
	switch {
	case err != nil:
		return failure(err.Error(), "")
	case due.IsZero():
		return success("no tick is to come, so none is needed")
	case visible > 0:
		return success("a message is visible: the platform starts a replica now, which sets the next one")
	case note.ID == "":
		return failure("none is pending, and a replica is wanted at "+format.Stamp(due), start)
	case d.app.Alarm.Elsewhere(note):
		return failure(fmt.Sprintf("the one that was set last is in another queue, %s, and a replica is wanted at %s", format.Line(note.Queue), format.Stamp(due)), start)
	case note.At.After(now) && note.At.After(due):
		return failure(fmt.Sprintf("the one that is pending comes at %s, and a replica is wanted at %s", format.Stamp(note.At), format.Stamp(due)), start)
	case note.At.After(now):
		return success(fmt.Sprintf("pending for %s, for the tick of %s", format.Stamp(note.At), format.Stamp(note.Tick)))
	}
	return warning(fmt.Sprintf("the last one was for %s and is gone: a replica is answering it, or nothing wakes the app up for %s", format.Stamp(note.At), format.Stamp(due)),
		"if no replica is up, "+start)
}

// checkRule reports what the environment shows of the platform's part.
func (d *doctor) checkRule() {
	switch name := os.Getenv("CONTAINER_APP_NAME"); {
	case app.InFunctions():
		// Its files show it: see checkFunctions.
	case os.Getenv("CONTAINER_APP_JOB_NAME") != "":
		d.add(passes, "rule", "the rule that starts the job cannot be seen from inside; see it with: az containerapp job show --query properties.configuration.eventTriggerConfig", "")
	case name != "" && d.app.Settings.Stay > 0:
		d.add(warns, "rule", "the platform starts a container of an app again when it ends by itself, until the app is scaled in", "set SOLOIST_STAY=0: the replica stays until the platform ends it")
	case name != "":
		d.add(passes, "rule", "the rule that starts a replica cannot be seen from inside; see it with: az containerapp show --query properties.template.scale", "")
	default:
		d.add(passes, "rule", "what starts a replica when a message is visible cannot be seen from here", "")
	}
}
