package app

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/schedule"
)

// override applies the settings of single jobs, and returns the URLs to which they report their runs. Wrong ones are left out,
// so that a mistake is reported once, by the variable's name.
func override(jobs []soloist.Job) (pings map[string]string, errs []error) {
	pings = map[string]string{}
	for i := range jobs {
		j := &jobs[i]
		prefix := jobPrefix(j.Name)
		s := JobSettings{Paused: j.Paused}
		errs = append(errs, readFields(prefix, &s)...)
		j.Paused = s.Paused
		errs = append(errs, reschedule(j, prefix, s))
		if s.Ping != "" {
			for _, name := range soloist.ShardNames(j.Name, j.Shards) {
				pings[name] = s.Ping
			}
			errs = append(errs, checkURL(prefix+"_PING", s.Ping))
		}
	}
	return pings, errs
}

// reschedule blames the variables for a schedule that is wrong with them.
func reschedule(j *soloist.Job, prefix string, s JobSettings) error {
	var set []string
	text, zone := j.Schedule, j.TimeZone
	if s.Schedule != "" {
		set, text = append(set, prefix+"_SCHEDULE"), s.Schedule
	}
	if s.TimeZone != "" {
		set, zone = append(set, prefix+"_TIMEZONE"), s.TimeZone
		if _, err := schedule.LoadZone(zone); err != nil {
			return fmt.Errorf("%s is %.80q: it %w", prefix+"_TIMEZONE", zone, err)
		}
	}
	if set == nil {
		return nil
	}
	if len(j.After.Jobs) > 0 {
		return fmt.Errorf("%s is set: the ticks of %s are those of the jobs that it follows, %s", strings.Join(set, " and "), j.Name, strings.Join(j.After.Jobs, ", "))
	}
	if _, err := schedule.Parse(text, zone, j.Name); err != nil {
		for i, name := range set {
			set[i] = fmt.Sprintf("%s is %.80q", name, os.Getenv(name))
		}
		return fmt.Errorf("%s: %w", strings.Join(set, " and "), err)
	}
	j.Schedule, j.TimeZone = text, zone
	return nil
}

func jobPrefix(job string) string {
	return "SOLOIST_JOB_" + strings.ToUpper(strings.ReplaceAll(job, "-", "_"))
}

// linked is what Kubernetes puts into the environment of a program beside a service whose name begins with soloist
// (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables).
var linked = regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_|$)|^SOLOIST(_.*)?_PORT(_\d+_(TCP|UDP|SCTP)(_PROTO|_PORT|_ADDR)?)?$`)

// unknown returns a warning for each variable that looks like a setting and is
// none. It shows no values: a mistyped token is a token.
func unknown(jobs []string) (warnings []string) {
	known := variables(jobs)
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "SOLOIST_") || slices.Contains(known, name) || linked.MatchString(name) {
			continue
		}
		text := name + " is not a setting"
		if strings.HasPrefix(name, "SOLOIST_JOB_") {
			text += " of any job of this program"
		}
		warnings = append(warnings, text+DidYouMean(": ", name, known))
	}
	slices.Sort(warnings)
	return warnings
}

// variables are the names of all settings of a program with these jobs.
func variables(jobs []string) (names []string) {
	for f := range reflect.TypeFor[Settings]().Fields() {
		names = append(names, variable("", f))
	}
	for _, job := range jobs {
		for f := range reflect.TypeFor[JobSettings]().Fields() {
			names = append(names, variable(jobPrefix(job), f))
		}
	}
	return names
}

// SettingsHelp lists the settings, as their tags describe them.
func SettingsHelp() string {
	var b strings.Builder
	b.WriteString("\nSettings are environment variables; an empty one counts as not set.\n\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for f := range reflect.TypeFor[Settings]().Fields() {
		fmt.Fprintf(w, "  %s\t%s\n", variable("", f), f.Tag.Get("doc"))
		fmt.Fprintf(w, "  \tnot set: %s\n", f.Tag.Get("unset"))
	}
	for f := range reflect.TypeFor[JobSettings]().Fields() {
		fmt.Fprintf(w, "  %s\t%s\n", variable("SOLOIST_JOB_<NAME>", f), f.Tag.Get("doc"))
	}
	w.Flush()
	b.WriteString("\n<NAME> is a job's name in capitals, with _ for -: NIGHTLY_REPORT for nightly-report.\n")
	return b.String()
}
