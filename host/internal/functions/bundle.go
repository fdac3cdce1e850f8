package functions

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/safefile"
)

// A Bundle is a Functions app as files.
type Bundle struct {
	app      *app.App
	hosting  string // the plan
	all      []Function
	files    map[string][]byte // by path, with slashes; the program is apart, since it is large
	program  string            // where it is
	target   string            // its path in the site
	warnings []string
	kept     []string // what was edited since
	removed  []string
	where    string
}

// BundleOptions say how a bundle differs from the usual one.
type BundleOptions struct {
	Program  string // the file of the program; empty: this one
	Plan     string // empty: Flex Consumption, where one timer serves all jobs, since each function has its own instances
	OneTimer bool   // one timer serves all jobs, whatever the plan is
	Warmup   bool   // there is a function for the warm-up of an instance
}

// NewBundle makes the files for the jobs of a program.
func NewBundle(a *app.App, o BundleOptions) (*Bundle, error) {
	b := &Bundle{app: a, hosting: cmp.Or(o.Plan, FlexConsumption), files: map[string][]byte{}, program: o.Program}
	if len(a.Scheduler.Jobs) == 0 {
		return b, errors.New("there is no job, and a singleton does not run in Functions: nothing runs there between two calls")
	}
	if b.program == "" {
		var err error
		if b.program, err = os.Executable(); err != nil {
			return b, fmt.Errorf("which program this is cannot be told, so name it with --binary: %w", err)
		}
	}
	if err := safefile.Leads(b.program); err != nil {
		return b, fmt.Errorf("the program: %w", err)
	}
	b.plan(o.OneTimer || b.hosting == FlexConsumption)
	for _, g := range a.Scheduler.Singletons {
		b.warnings = append(b.warnings, "singleton "+g.Name+" does not run in Functions: nothing runs there between two calls")
	}
	if err := b.checkNames(); err != nil {
		return b, err
	}
	b.inspect()
	b.files["host.json"] = indented(hostFile(b.target, b.timeout(), b.alarms()))
	if o.Warmup {
		warmup := Function{Name: warmupFunction, Why: "called before an instance gets work"}
		b.add(warmup, binding("warmupTrigger", "warmupContext", nil), nil)
	}
	b.files["local.settings.json"] = indented(localFile())
	b.files[".funcignore"] = []byte("local.settings.json\n" + manifestFile + "\n")
	return b, nil
}

// add adds a function that is called through a binding. again is nil where the next call is near if one has failed.
func (b *Bundle) add(f Function, trigger, again object) {
	file := object{"bindings": []any{trigger}}
	if again != nil {
		file["retry"] = again
	}
	b.all = append(b.all, f)
	b.files[f.Name+"/function.json"] = indented(file)
}

func (b *Bundle) addTimer(name, schedule, why string, again object) {
	trigger := binding("timerTrigger", "timer", object{"schedule": schedule, "runOnStartup": false, "useMonitor": true})
	b.add(Function{name, schedule, why}, trigger, again)
}

// plan decides which functions there are; all: one timer is to serve all
// jobs.
func (b *Bundle) plan(all bool) {
	if b.alarms() {
		b.planAlarm()
		return
	}
	var rest []string
	for _, j := range b.app.Scheduler.Jobs {
		text, ok := ncrontab(j, b.app.Now())
		follows := len(j.After.Jobs) > 0 // the timers of the jobs before it wake it up
		if ok && !all {
			b.addTimer(j.Name, text, "", retryOf(j, b.app.Now()))
		}
		switch why := needsTick(j); {
		case all:
			rest = append(rest, j.Name)
		case !ok && !follows:
			rest = append(rest, j.Name+" (its schedule)")
		case why != "":
			rest = append(rest, j.Name+" ("+why+")")
		}
		b.warnOf(j, ok && !all)
	}
	if rest != nil {
		b.addTimer(tickFunction, everyMinute, "for "+format.Join(rest...), nil)
	}
}

// warnOf says what a job will not have; own: it has a timer of its own.
func (b *Bundle) warnOf(j soloist.Job, own bool) {
	if j.EveryReplica {
		b.warnings = append(b.warnings, "job "+j.Name+" runs on each replica: here it is the one instance that the timer calls")
	}
	if !own && j.Late.Missed != soloist.RunAll && oftener(j, time.Minute, b.app.Now()) {
		b.warnings = append(b.warnings, "job "+j.Name+" has ticks more often than the function tick comes, once a minute: those between are missed")
	}
}

// needsTick is why a job with a timer of its own needs the function tick too, if
// so: its next timer may be a day away.
func needsTick(j soloist.Job) string {
	switch {
	case j.Interrupted == soloist.Rerun:
		return "rerun"
	case j.Late.Missed == soloist.RunAll:
		return "all missed ticks"
	case j.Overlap != soloist.SkipOverlap:
		return "a tick that waits"
	}
	return ""
}

// functionRule is what the host takes for a function's name, in any case
// (https://github.com/Azure/azure-functions-host/blob/dev/src/WebJobs.Script/Utility.cs).
var functionRule = regexp.MustCompile(`(?i)^[a-z][a-z0-9_\-]{0,127}$`)

// checkNames also finds a name for the program that no folder has.
func (b *Bundle) checkNames() error {
	b.target = b.app.Console.Name
	for _, f := range b.all {
		if !functionRule.MatchString(f.Name) || strings.EqualFold(f.Name, "host") {
			return fmt.Errorf("the name %q is none that Functions takes", f.Name)
		}
	}
	if b.target == "" || strings.ContainsAny(b.target, "/\\%") {
		b.target = "handler"
	}
	for slices.Contains([]string{tickFunction, warmupFunction, alarmFunction, "host.json", "local.settings.json"}, b.target) || slices.Contains(b.app.Jobs(), b.target) {
		b.target += ".program"
	}
	return nil
}

// inspect warns of a program that the platform cannot run, or that is not this.
func (b *Bundle) inspect() {
	text, err := os.ReadFile(b.program)
	system, arch := goos.FindSubmatch(text), goarch.FindSubmatch(text)
	if err != nil || system == nil || arch == nil {
		b.warnings = append(b.warnings, "whether "+b.program+" runs on linux/amd64 cannot be told: it is no Go program")
		return
	}
	if string(system[1]) == "windows" {
		b.target += ".exe"
	}
	if string(system[1]) != "linux" || string(arch[1]) != "amd64" {
		b.warnings = append(b.warnings, fmt.Sprintf("the program is for %s/%s, and Functions runs linux/amd64: build it with GOOS=linux GOARCH=amd64 CGO_ENABLED=0 go build, and name it with --binary", system[1], arch[1]))
	}
}

// goos and goarch are lines of a Go program's build information. To find them so takes no package that reads all
// formats of programs, which are a fiftieth of what compiles.
var (
	goos   = regexp.MustCompile(`\nbuild\tGOOS=(\w+)\n`)
	goarch = regexp.MustCompile(`\nbuild\tGOARCH=(\w+)\n`)
)

// timeout is long enough for each job.
func (b *Bundle) timeout() time.Duration {
	most, around := leastTimeout(b.hosting), b.app.Settings.Grace+maxMargin+b.app.Settings.Lease // a lease, as it may have to be waited for
	if b.alarms() {                                                                              // a tick, too
		around += b.app.Settings.Patience()
	}
	for _, j := range b.app.Scheduler.Jobs {
		if j.Timeout == 0 {
			continue
		}
		span := (j.Timeout + around + time.Minute - 1).Truncate(time.Minute)
		if span > consumptionMost && b.hosting == Consumption {
			b.warnings = append(b.warnings, tooLongForConsumption(j, span, around))
		}
		most = max(most, span)
	}
	if b.hosting == FlexConsumption {
		b.warnings = append(b.warnings, TooLongForFlex(b.app)...)
	}
	return most
}

// notes are what an operator should know about what was written.
func (b *Bundle) notes() []string {
	notes := slices.Clone(b.warnings)
	for _, path := range b.kept {
		notes = append(notes, path+" was edited since it was written, and is left alone")
	}
	return notes
}

// A Function is a written function in JSON.
type Function struct {
	Name     string `json:"function"`
	Schedule string `json:"timer,omitempty"` // in UTC; empty: it has no timer
	Why      string `json:"why,omitempty"`
}

// A Written is the answer of the command functions in JSON.
type Written struct {
	Directory string     `json:"directory"`
	Functions []Function `json:"functions"`
	Removed   []string   `json:"removed"`
	Warnings  []string   `json:"warnings"`
}

// Answer is Print in JSON.
func (b *Bundle) Answer() Written {
	return Written{b.where, append([]Function{}, b.all...), append([]string{}, b.removed...), append([]string{}, b.notes()...)}
}

// Print reports what was written, and what an operator should know about it.
func (b *Bundle) Print() {
	fmt.Fprintf(b.app.Console.Stdout, "%s in %s\n\n", format.Plural(len(b.all), "function"), format.Escape(b.where))
	w := format.Table(b.app.Console.Stdout, "FUNCTION\tTIMER (UTC)\t")
	for _, f := range b.all {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Name, cmp.Or(f.Schedule, "-"), f.Why)
	}
	w.Flush()
	for _, path := range b.removed {
		fmt.Fprintf(b.app.Console.Stdout, "removed %s\n", format.Escape(path))
	}
	for _, text := range b.notes() {
		b.app.Console.Tell("%s", text)
	}
}
