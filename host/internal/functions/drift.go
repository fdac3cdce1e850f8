package functions

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/safefile"
	"github.com/soloist-go/soloist/internal/schedule"
)

// A Drift is a difference between the functions that are deployed and those
// that the jobs need. The host reads its timers from files, which a setting of
// a job, or a program that is replaced alone, does not change.
type Drift struct {
	function string // empty: it is about all of them
	text     string
	Late     bool   // ticks are missed, or run by a later call
	Do       string // about it
}

// Words are the difference, and the function that has it.
func (d Drift) Words() string {
	if d.function == "" {
		return d.text
	}
	return "function " + d.function + ": " + d.text
}

// Drifts compares the functions below root with the jobs; empty: there are none.
func Drifts(a *app.App, root string) (all []Drift) {
	if root == "" {
		return nil
	}
	there, all := deployedIn(root)
	all = append(all, timeoutDrift(&a.Settings, root)...)
	for name := range there {
		if !slices.Contains(functionsOf(a), name) { // the job is gone, or it is a singleton
			all = append(all, Drift{function: name, text: "no job has this name, so its calls are refused"})
		}
	}
	if a.Settings.Alarm == app.ByQueue {
		all = append(all, alarmDrifts(a, there)...)
	} else {
		all = append(all, timerDrifts(a, there)...)
	}
	for i := range all {
		all[i].Do = cmp.Or(all[i].Do, fmt.Sprintf("run %s functions DIR with the same settings of the jobs, and deploy DIR", a.Console.Name))
	}
	slices.SortFunc(all, func(a, b Drift) int { return cmp.Compare(a.function, b.function) })
	return all
}

// timerDrifts compares an app whose functions are called by timers.
func timerDrifts(a *app.App, there map[string]triggers) (all []Drift) {
	tick, now := there[tickFunction].timers, a.Now()
	ticks := slices.ContainsFunc(tick, func(text string) bool { return firesAt(text, everyMinuteJob, now) })
	for _, j := range a.Scheduler.Jobs {
		if text := jobDrift(j, there[j.Name].timers, ticks, now); text != "" {
			all = append(all, Drift{function: j.Name, text: text, Late: !ticks})
		}
	}
	if _, deployed := there[tickFunction]; deployed && !ticks {
		all = append(all, Drift{function: tickFunction, Late: true,
			text: fmt.Sprintf("its timer, %s, is not that of each minute, %q", quoted(tick), everyMinute)})
	}
	if zone := os.Getenv("WEBSITE_TIME_ZONE"); zone != "" && !strings.EqualFold(zone, "UTC") && zone != "Etc/UTC" {
		all = append(all, Drift{Late: !ticks, Do: "remove that setting",
			text: fmt.Sprintf("WEBSITE_TIME_ZONE is %.80q, by which timers count, and they are written for UTC", zone)})
	}
	return all
}

// alarmDrifts compares an app with alarms: one function is called by their queue, and one by a timer.
func alarmDrifts(a *app.App, there map[string]triggers) (all []Drift) {
	alarm, deployed := there[alarmFunction]
	switch {
	case !deployed:
		all = append(all, Drift{function: alarmFunction, Late: true, text: "it is missing, so no alarm wakes the app up"})
	case !slices.ContainsFunc(alarm.queues, func(q string) bool { return setting(q) == a.Settings.AlarmQueue }):
		all = append(all, Drift{function: alarmFunction, Late: true,
			text: fmt.Sprintf("its queue is %s, and alarms are put into %q (SOLOIST_ALARM_QUEUE)", quoted(alarm.queues), a.Settings.AlarmQueue)})
	}
	if len(there[tickFunction].timers) == 0 {
		all = append(all, Drift{function: tickFunction, text: "it has no timer, so nothing wakes the app up if an alarm is lost"})
	}
	for _, name := range a.Jobs() {
		if timers := there[name].timers; len(timers) > 0 {
			all = append(all, Drift{function: name,
				text: fmt.Sprintf("its timer, %s, is not needed: the function alarm runs the job", quoted(timers))})
		}
	}
	return all
}

// timeoutDrift compares the time that the program plans with to the host's.
func timeoutDrift(s *app.Settings, root string) []Drift {
	most, err := hostTimeout(root)
	if err != nil || most == 0 || s.FunctionTimeout <= most {
		return nil
	}
	return []Drift{{Late: true, Do: "lower or remove that setting, or raise functionTimeout in host.json",
		text: fmt.Sprintf("SOLOIST_FUNCTION_TIMEOUT is %s, and the host kills the program when an invocation has lasted %s", s.FunctionTimeout, most)}}
}

// everyMinuteJob has the ticks of the function tick.
var everyMinuteJob = soloist.Job{Name: tickFunction, Schedule: "* * * * *"}

// jobDrift is what is wrong with the timers of one job; ticks: there is also a timer
// that serves all jobs. A job that follows others is woken up by the timers of those.
func jobDrift(j soloist.Job, timers []string, ticks bool, now time.Time) string {
	follows, why := len(j.After.Jobs) > 0, needsTick(j)
	own := !follows && slices.ContainsFunc(timers, func(text string) bool { return firesAt(text, j, now) })
	switch {
	case follows && len(timers) > 0:
		return fmt.Sprintf("its timer, %s, is not needed: the job follows %s, whose timers run it", quoted(timers),
			strings.Join(j.After.Jobs, ", "))
	case ticks && (own || len(timers) == 0), why == "" && (own || follows):
		return ""
	case follows:
		return fmt.Sprintf("the job needs the function tick (%s)", why)
	case own:
		return fmt.Sprintf("the job needs the function tick too (%s)", why)
	case len(timers) == 0:
		return "the job has no timer, and there is no function tick: nothing runs its ticks"
	}
	text := fmt.Sprintf("its timer, %s, does not fire at the ticks of the job, %q", quoted(timers), j.Schedule)
	if j.TimeZone != "" {
		text += " in " + j.TimeZone
	}
	if ticks {
		text += ": the function tick runs them, up to a minute late"
	}
	return text
}

// compareSome is for a start, which the host waits for: what is in an hour shows
// in the first hours.
const compareSome = 10_000

// firesAt reports whether a timer fires at the ticks of a job, and no others.
func firesAt(timer string, j soloist.Job, now time.Time) bool {
	want, err := wakeUps(j)
	if err != nil {
		return false
	}
	got, err := schedule.Parse("ncrontab "+setting(timer), "", j.Name)
	return err == nil && sameTicks(want, got, now, compareSome)
}

// triggers are what calls a deployed function: schedules of timers, names of queues.
type triggers struct{ timers, queues []string }

// deployedIn reads the functions below root. It also reports what the host cannot read.
func deployedIn(root string) (there map[string]triggers, all []Drift) {
	there = map[string]triggers{}
	dirs, err := os.ReadDir(root)
	if err != nil {
		all = append(all, Drift{function: "host.json", text: format.Line(err.Error()), Late: true})
	}
	for _, d := range dirs {
		text, err := safefile.Read(filepath.Join(root, d.Name(), "function.json"))
		if errors.Is(err, fs.ErrNotExist) || !d.IsDir() {
			continue
		}
		name := strings.ToLower(d.Name())
		var f struct {
			Bindings []struct{ Type, Schedule, QueueName string }
			Disabled bool
		}
		if err == nil {
			err = json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &f)
		}
		switch {
		case err != nil:
			all = append(all, Drift{function: name, text: "its function.json cannot be read: " + format.Line(err.Error()), Late: true})
			continue
		case f.Disabled || switchedOff(d.Name()):
			continue
		}
		var t triggers
		for _, b := range f.Bindings {
			switch strings.ToLower(b.Type) {
			case "timertrigger":
				t.timers = append(t.timers, b.Schedule)
			case "queuetrigger":
				t.queues = append(t.queues, b.QueueName)
			}
		}
		there[name] = t
	}
	return there, all
}

// switchedOff reports whether an app setting disables a function. Linux has no
// dots in the names of variables
// (https://learn.microsoft.com/azure/azure-functions/disable-function).
func switchedOff(function string) bool {
	text := cmp.Or(os.Getenv("AzureWebJobs."+function+".Disabled"), os.Getenv("AzureWebJobs_"+function+"_Disabled"))
	return text == "1" || strings.EqualFold(text, "true")
}

// setting resolves a schedule that is %NAME%, the value of an app setting. It is
// compared and never shown: it may name a secret.
func setting(text string) string {
	if name, ok := strings.CutPrefix(text, "%"); ok {
		if name, ok = strings.CutSuffix(name, "%"); ok {
			return os.Getenv(name)
		}
	}
	return text
}

func quoted(texts []string) string {
	var all []string
	for _, text := range texts {
		all = append(all, fmt.Sprintf("%.80q", text))
	}
	return cmp.Or(format.Join(all...), "none")
}

// checkDeployed looks at the functions once, at the start: when they change, the host
// starts its handler again.
func checkDeployed(a *app.App) (deployed []string) {
	root := AppRoot()
	for _, d := range Drifts(a, root) {
		say := a.Log.Warn
		if d.Late {
			say = a.Log.Error
		}
		say("a function is not what the jobs need: "+d.text, "function", d.function, "root", root, "do", d.Do)
		deployed = append(deployed, d.Words()+": "+d.Do)
	}
	return deployed
}

// DriftWords are for the commands.
func DriftWords(a *app.App) (words []string) {
	for _, d := range Drifts(a, AppRoot()) {
		words = append(words, d.Words()+": "+d.Do)
	}
	return words
}
