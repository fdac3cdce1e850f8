package host

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/schedule"
)

// override applies the settings of single jobs. Wrong ones are left out, so
// that a mistake is told once, by the variable's name.
func override(jobs []soloist.Job) (errs []error) {
	for i := range jobs {
		j := &jobs[i]
		prefix := jobPrefix(j.Name)
		s := jobSettings{Paused: j.Paused}
		errs = append(errs, readFields(prefix, &s)...)
		j.Paused = s.Paused
		errs = append(errs, reschedule(j, prefix, s))
	}
	return errs
}

// reschedule blames the variables for a schedule that is wrong with them.
func reschedule(j *soloist.Job, prefix string, s jobSettings) error {
	var set []string
	text, zone := j.Schedule, j.TimeZone
	if s.Schedule != "" {
		set, text = append(set, prefix+"_SCHEDULE"), s.Schedule
	}
	if s.TimeZone != "" {
		set, zone = append(set, prefix+"_TIMEZONE"), s.TimeZone
	}
	if set == nil {
		return nil
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

// unknown returns a warning for each variable that looks like a setting and is
// none. It tells no values: a mistyped token is a token.
func unknown(jobs []string) (warnings []string) {
	known := variables(jobs)
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "SOLOIST_") || slices.Contains(known, name) {
			continue
		}
		text := name + " is not a setting"
		if strings.HasPrefix(name, "SOLOIST_JOB_") {
			text += " of any job of this program"
		}
		if near := nearest(name, known); near != "" {
			text += ": is " + near + " meant?"
		}
		warnings = append(warnings, text)
	}
	slices.Sort(warnings)
	return warnings
}

// variables are the names of all settings of a program with these jobs.
func variables(jobs []string) (names []string) {
	for f := range reflect.TypeFor[settings]().Fields() {
		names = append(names, variable("", f))
	}
	for _, job := range jobs {
		for f := range reflect.TypeFor[jobSettings]().Fields() {
			names = append(names, variable(jobPrefix(job), f))
		}
	}
	return names
}

// nearest returns the name that a slip of a few keys makes of the given one.
func nearest(name string, known []string) (near string) {
	least := 4
	for _, k := range known {
		if d := distance(name, k); d < least {
			least, near = d, k
		}
	}
	return near
}

// distance is how many characters have to be put in, left out or replaced.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
