package soloist

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/soloist-go/soloist/internal/ticks"
)

// A lineage finds the ticks of jobs that follow others.
type lineage struct {
	jobs       map[string]*Job
	singletons map[string]bool
	found      map[string]*ticks.Ticks // ticks of jobs; nil: there are none, and an error says why
}

// newLineage returns the lineage of a scheduler's jobs.
func newLineage(jobs []Job, singletons []Singleton) *lineage {
	l := &lineage{jobs: map[string]*Job{}, singletons: map[string]bool{}, found: map[string]*ticks.Ticks{}}
	for i := range jobs {
		l.jobs[jobs[i].Name] = &jobs[i]
	}
	for _, g := range singletons {
		l.singletons[g.Name] = true
	}
	return l
}

// named returns the ticks of a job: the ticks of its schedule or, for a follower, of the jobs
// that it follows. The path has the followers of this job from which it was reached.
func (l *lineage) named(j *Job, path ...string) (*ticks.Ticks, error) {
	if len(j.After.Jobs) == 0 {
		return j.checkTicks()
	}
	var errs []error
	var first string
	var common *ticks.Ticks
	path = append(path, j.Name)
	for i, name := range j.After.Jobs {
		if slices.Contains(j.After.Jobs[:i], name) {
			errs = append(errs, mistaken("names %s twice", quote(name)))
			continue
		}
		t, err := l.ticksOf(name, path)
		switch {
		case err != nil:
			errs = append(errs, err)
		case common == nil:
			first, common = name, t
		case common.String() != t.String():
			errs = append(errs, mistaken("names %s, %s, and %s, %s: allowed are jobs with the ticks of one schedule", quote(first), common.Words(), quote(name), t.Words()))
		}
	}
	return common, errors.Join(errs...)
}

// An ancestry is what a job has of those that it follows.
type ancestry struct {
	ticks *ticks.Ticks
	wrong error    // why there are no ticks
	after []string // the names of all shards of the jobs that it follows
}

// of returns the ancestry of a job.
func (l *lineage) of(j *Job) (a ancestry) {
	if a.ticks, a.wrong = l.named(j); a.wrong == nil {
		a.after = l.parts(j)
	}
	return a
}

// parts returns the names of all shards of the jobs that a job follows.
func (l *lineage) parts(j *Job) (names []string) {
	for _, name := range j.After.Jobs {
		names = append(names, ShardNames(name, l.jobs[name].Shards)...)
	}
	return names
}

// ticksOf returns the ticks of a job that the last one of a path follows.
func (l *lineage) ticksOf(name string, path []string) (*ticks.Ticks, error) {
	j := l.jobs[name]
	switch {
	case name == "":
		return nil, mistaken("has an empty name: allowed are names of jobs")
	case name == path[len(path)-1]:
		return nil, mistaken("names %s, which is this job itself", quote(name))
	case slices.Contains(path, name):
		return nil, &circleError{append(slices.Clone(path[slices.Index(path, name):]), name)}
	case l.singletons[name]:
		return nil, mistaken("names %s, which is a singleton: it has no ticks", quote(name))
	case j == nil:
		return nil, mistaken("names %s, and there is no such job", quote(name))
	case j.EveryReplica:
		return nil, mistaken("names %s, which is a job of EveryReplica: its ticks have no outcome", quote(name))
	}
	found, known := l.found[name]
	if !known {
		t, err := l.named(j, path...)
		if err == nil {
			found = t
		}
		l.found[name] = found
		if circle, ok := errors.AsType[*circleError](err); ok {
			return nil, circle
		}
	}
	if found == nil {
		return nil, mistaken("names %s, whose own ticks are not known", quote(name))
	}
	return found, nil
}

// mistaken returns the error for what After.Jobs names.
func mistaken(format string, args ...any) error { return fmt.Errorf("After.Jobs "+format, args...) }

// A circleError says that jobs wait for each other.
type circleError struct{ names []string }

func (e *circleError) Error() string {
	return "After.Jobs leads back to where it began: " + strings.Join(e.names, " after ")
}

// words returns when a follower is due, for people.
func (j *Job) words() string {
	names := j.After.Jobs
	text := names[len(names)-1]
	if rest := names[:len(names)-1]; len(rest) > 0 {
		text = strings.Join(rest, ", ") + " and " + text
	}
	if j.After.Any {
		return "after " + text + ", whatever the outcome"
	}
	return "after " + text
}
