package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
)

// wakeCommand has the platform start a replica, where alarms are on: after a deployment, whose schedules the pending alarm
// does not know.
type wakeCommand struct{ jsonFlag }

// A woke is what wake prints in JSON.
type woke struct {
	App   string `json:"app"`
	Queue string `json:"queue"`
	Error string `json:"error,omitempty"`
}

func (c *wakeCommand) run(ctx context.Context, p *Program) int {
	return p.with(mode{}, func(a *app.App) int {
		if a.Alarm == nil {
			c.tell(a, errors.New("there is no queue of alarms: set SOLOIST_ALARM=queue, as for the program that is to be woken up"))
			return exitUsage
		}
		ctx, cancel := context.WithTimeout(ctx, statusTime)
		defer cancel()
		return c.tell(a, a.Alarm.Wake(ctx))
	})
}

func (c *wakeCommand) tell(a *app.App, err error) int {
	body, code := woke{App: a.Settings.App, Queue: a.Settings.AlarmQueue}, exitOK
	if err != nil {
		body.Error, code = format.Line(err.Error()), exitFail
	}
	switch {
	case c.JSON:
		return max(code, printed(a.Console.JSON(body)))
	case err != nil:
		a.Console.Tell("wake: %s", body.Error)
	default:
		fmt.Fprintf(a.Console.Stdout, "a message is in the queue %s: the platform starts a replica when it looks there next, which sets the alarm for the next tick\n", body.Queue)
	}
	return code
}

// printAlarm prints when the app is woken up next, where alarms are on.
func printAlarm(ctx context.Context, a *app.App) {
	if a.Alarm == nil {
		return
	}
	note, err := a.Alarm.Pending(ctx)
	switch now := a.Alarm.Now(); {
	case err != nil:
		fmt.Fprintf(a.Console.Stdout, "\nalarm: %s\n", format.Line(err.Error()))
	case note.ID == "":
		fmt.Fprintf(a.Console.Stdout, "\nalarm: none is set yet\n")
	case a.Alarm.Elsewhere(note):
		fmt.Fprintf(a.Console.Stdout, "\nalarm: none is set in this queue: the last one is in %s\n", format.Line(note.Queue))
	case note.At.After(now):
		fmt.Fprintf(a.Console.Stdout, "\nalarm: at %s, %s, for the tick of %s\n", format.Stamp(note.At), format.Relative(note.At, now), format.Stamp(note.Tick))
	default:
		fmt.Fprintf(a.Console.Stdout, "\nalarm: the last one was at %s: a replica answers it, and sets the next one\n", format.Stamp(note.At))
	}
}
