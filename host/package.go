package host

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
)

// consumptionMost is the longest functionTimeout of the Consumption plan, and
// what host.json has unless a job needs more.
const consumptionMost = 10 * time.Minute

// writeFunctions writes a directory that can be deployed to Azure Functions.
func writeFunctions(_ context.Context, bare *app, given arguments) int {
	a, code := bare.openOr("functions")
	if code != exitOK {
		return code
	}
	site, err := a.newSite(given)
	if err == nil {
		err = site.write(given.job)
	}
	if err != nil {
		a.complain(err)
		return exitFail
	}
	site.print()
	return exitOK
}

// A site is a Functions app as files.
type site struct {
	*app
	timers   []timer
	files    map[string][]byte // by path, with slashes; the program is apart, since it is large
	program  string            // where it is
	target   string            // its path in the site
	warnings []string
	kept     []string // what was edited since
	removed  []string
	where    string
}

// A timer is one function with a timer trigger.
type timer struct {
	name, schedule, why string
	again               *retryPolicy // nil: the next call is near
}

func (a *app) newSite(given arguments) (*site, error) {
	s := &site{app: a, files: map[string][]byte{}, program: given.binary}
	if len(a.sched.Jobs) == 0 {
		return s, errors.New("there is no job, and a singleton does not run in Functions: nothing runs there between two calls")
	}
	if s.program == "" {
		var err error
		if s.program, err = os.Executable(); err != nil {
			return s, fmt.Errorf("which program this is cannot be told, so name it with --binary: %w", err)
		}
	}
	s.plan(given.tick)
	if err := s.checkNames(); err != nil {
		return s, err
	}
	s.inspect()
	s.files["host.json"] = indented(hostFile(s.target, s.timeout()))
	for _, t := range s.timers {
		s.files[t.name+"/function.json"] = indented(timerFile(t))
	}
	if given.warmup {
		s.files[warmupFunction+"/function.json"] = indented(functionFile{Bindings: []any{binding{"warmupTrigger", "in", "warmupContext"}}})
	}
	s.files["local.settings.json"] = indented(localFile())
	s.files[".funcignore"] = []byte("local.settings.json\n" + markerFile + "\n")
	return s, nil
}

// plan decides which functions there are; all: one timer is to look after all
// jobs.
func (s *site) plan(all bool) {
	var rest []string
	for _, j := range s.sched.Jobs {
		text, ok := ncrontab(j, s.Now())
		if ok && !all {
			s.timers = append(s.timers, timer{name: j.Name, schedule: text, again: retryOf(j, s.Now())})
		}
		switch why := needsTick(j); {
		case all:
			rest = append(rest, j.Name)
		case !ok:
			rest = append(rest, j.Name+" (its schedule)")
		case why != "":
			rest = append(rest, j.Name+" ("+why+")")
		}
		s.warnOf(j, ok && !all)
	}
	if rest != nil {
		s.timers = append(s.timers, timer{name: tickFunction, schedule: everyMinute, why: "for " + join(rest...)})
	}
	for _, g := range s.sched.Singletons {
		s.warnings = append(s.warnings, "singleton "+g.Name+" does not run in Functions: nothing runs there between two calls")
	}
}

// warnOf says what a job will not have; own: it has a timer of its own.
func (s *site) warnOf(j soloist.Job, own bool) {
	if j.EveryReplica {
		s.warnings = append(s.warnings, "job "+j.Name+" runs on each replica: here it is the one instance that the timer calls")
	}
	if !own && j.Missed != soloist.RunAll && oftener(j, time.Minute, s.Now()) {
		s.warnings = append(s.warnings, "job "+j.Name+" has ticks more often than the function tick comes, once a minute: those between are missed")
	}
}

// needsTick is why a job with a timer of its own needs the function tick too, if
// so: its next timer may be a day away.
func needsTick(j soloist.Job) string {
	switch {
	case j.Interrupted == soloist.Rerun:
		return "rerun"
	case j.Missed == soloist.RunAll:
		return "all missed ticks"
	}
	return ""
}

// functionRule is what the host takes for a function's name, in any case
// (https://github.com/Azure/azure-functions-host/blob/dev/src/WebJobs.Script/Utility.cs).
var functionRule = regexp.MustCompile(`(?i)^[a-z][a-z0-9_\-]{0,127}$`)

// checkNames also finds a name for the program that no folder has.
func (s *site) checkNames() error {
	s.target = s.Name
	for _, t := range s.timers {
		if !functionRule.MatchString(t.name) || strings.EqualFold(t.name, "host") {
			return fmt.Errorf("the name %q is none that Functions takes", t.name)
		}
	}
	if s.target == "" || strings.ContainsAny(s.target, "/\\%") {
		s.target = "handler"
	}
	for slices.Contains([]string{tickFunction, warmupFunction, "host.json", "local.settings.json"}, s.target) || slices.Contains(s.names(), s.target) {
		s.target += ".program"
	}
	return nil
}

// inspect warns of a program that the platform cannot run, or that is not this.
func (s *site) inspect() {
	info, err := buildinfo.ReadFile(s.program)
	if err != nil {
		s.warnings = append(s.warnings, "whether "+s.program+" runs on linux/amd64 cannot be told: it is no Go program")
		return
	}
	get := func(key string) string {
		for _, setting := range info.Settings {
			if setting.Key == key {
				return setting.Value
			}
		}
		return "unknown"
	}
	system, arch := get("GOOS"), get("GOARCH")
	if system == "windows" {
		s.target += ".exe"
	}
	if system != "linux" || arch != "amd64" {
		s.warnings = append(s.warnings, fmt.Sprintf("the program is for %s/%s, and Functions runs linux/amd64: build it with GOOS=linux GOARCH=amd64 CGO_ENABLED=0 go build, and name it with --binary", system, arch))
	}
}

// timeout is long enough for each job.
func (s *site) timeout() time.Duration {
	most, around := consumptionMost, s.Grace+maxMargin+s.Lease // a lease, as it may have to be waited for
	for _, j := range s.sched.Jobs {
		if j.Timeout == 0 {
			continue
		}
		span := (j.Timeout + around + time.Minute - 1).Truncate(time.Minute)
		if span > consumptionMost {
			s.warnings = append(s.warnings, fmt.Sprintf("job %s may take %s, which needs a functionTimeout of %s: an app on the Consumption plan, whose most is %s, would not start. "+
				"Deploy to another plan, or give the job a Timeout of at most %s", j.Name, j.Timeout, hostSpan(span), hostSpan(consumptionMost), max(0, consumptionMost-around)))
		}
		most = max(most, span)
	}
	return most
}

func (s *site) print() {
	all := s.timers
	if s.files[warmupFunction+"/function.json"] != nil {
		all = append(slices.Clone(all), timer{name: warmupFunction, schedule: "-", why: "called before an instance gets work"})
	}
	fmt.Fprintf(s.Stdout, "%s in %s\n\n", plural(len(all), "function"), s.where)
	w := table(s.Stdout, "FUNCTION\tTIMER (UTC)\t")
	for _, t := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\n", t.name, t.schedule, t.why)
	}
	w.Flush()
	for _, path := range s.removed {
		fmt.Fprintf(s.Stdout, "removed %s\n", path)
	}
	for _, path := range s.kept {
		s.warnings = append(s.warnings, path+" was edited since it was written, and is left alone")
	}
	for _, text := range s.warnings {
		fmt.Fprintf(s.Stderr, "%s: %s\n", s.Name, text)
	}
}
