// Package judge says of a stretch of time with a platform that scales to zero which ticks were run, how late, and what part of
// that was the platform's.
package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
)

// A Story is what happened between two times.
type Story struct {
	From, To time.Time
	Polling  time.Duration     // of the platform's scaler
	Jobs     map[string]string // schedules by job
	Starts   []Start
	Replicas []Replica
	Wakes    []Wake
}

// A Start is one of a run.
type Start struct {
	Job      string
	Tick, At time.Time
}

// A Replica is a process.
type Replica struct {
	Begun time.Time // it was about to be started
	Up    time.Time // its main function began; zero: never
	Gone  time.Time // zero: not yet
}

// A Wake is a look of the scaler that found messages while no replica was wanted. Visible is since when an alarm was there;
// zero: there were only messages that an earlier pass had left, or that are no alarms.
type Wake struct{ Visible, Seen time.Time }

// A Tick is a tick that was due.
type Tick struct {
	Job    string
	Due    time.Time
	Starts int
	Late   time.Duration // from due to the first start
	Waited time.Duration // the part of it in which the platform had no replica up, though it should have known
}

// Own is the part of the delay that is not the platform's.
func (t Tick) Own() time.Duration { return t.Late - t.Waited }

// Ticks returns the ticks that were due from From until before To, by job and time.
func (s Story) Ticks() (all []Tick, err error) {
	type tickOf struct {
		job string
		due int64
	}
	starts := map[tickOf][]time.Time{}
	for _, one := range s.Starts {
		key := tickOf{one.Job, one.Tick.UnixNano()}
		starts[key] = append(starts[key], one.At)
	}
	for job, text := range s.Jobs {
		times, err := schedule.Parse(text, "", job)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", job, err)
		}
		for due := times.Next(s.From.Add(-1)); !due.IsZero() && due.Before(s.To); due = times.Next(due) {
			t := Tick{Job: job, Due: due}
			if at := starts[tickOf{job, due.UnixNano()}]; len(at) > 0 {
				t.Starts, t.Late = len(at), slices.MinFunc(at, time.Time.Compare).Sub(due)
				t.Waited = min(s.absent(due, due.Add(t.Late)), s.Polling+s.longestStart())
			}
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b Tick) int { return cmp.Or(cmp.Compare(a.Job, b.Job), a.Due.Compare(b.Due)) })
	return all, nil
}

// absent is how long from due on no replica was up, at most until then.
func (s Story) absent(due, until time.Time) time.Duration {
	first := until
	for _, r := range s.Replicas {
		if !r.Up.IsZero() && r.Up.Before(first) && (r.Gone.IsZero() || r.Gone.After(due)) {
			first = r.Up
		}
	}
	return max(0, first.Sub(due))
}

// longestStart is the longest time from the start of a process to its main function.
func (s Story) longestStart() (d time.Duration) {
	for _, one := range s.ProcessStarts() {
		d = max(d, one)
	}
	return d
}

// ProcessStarts returns what each process took to its main function.
func (s Story) ProcessStarts() (all []time.Duration) {
	for _, r := range s.Replicas {
		if !r.Up.IsZero() {
			all = append(all, r.Up.Sub(r.Begun))
		}
	}
	return all
}

// Polls returns how long each alarm that woke the platform had been visible.
func (s Story) Polls() (all []time.Duration) {
	for _, w := range s.Wakes {
		if !w.Visible.IsZero() {
			all = append(all, w.Seen.Sub(w.Visible))
		}
	}
	return all
}

// ReplicaTime is the sum of the times of all replicas between From and To.
func (s Story) ReplicaTime() (sum time.Duration) {
	for _, r := range s.Replicas {
		gone := s.To
		if !r.Gone.IsZero() && r.Gone.Before(gone) {
			gone = r.Gone
		}
		begun := r.Begun
		if begun.Before(s.From) {
			begun = s.From
		}
		sum += max(0, gone.Sub(begun))
	}
	return sum
}

// Faults returns what is wrong: ticks that were lost, run twice, or late by more than is allowed, the platform's part apart.
func Faults(all []Tick, allowed time.Duration) (faults []string) {
	for _, t := range all {
		what := ""
		switch {
		case t.Starts == 0:
			what = "was not run"
		case t.Starts > 1:
			what = fmt.Sprintf("was run %d times", t.Starts)
		case t.Late < 0:
			what = fmt.Sprintf("was run %s early", -t.Late)
		case t.Own() > allowed:
			what = fmt.Sprintf("was run %s late, of which %s was the platform's", t.Late.Round(time.Millisecond), t.Waited.Round(time.Millisecond))
		default:
			continue
		}
		faults = append(faults, fmt.Sprintf("%s of %s %s", t.Job, t.Due.UTC().Format("15:04:05"), what))
	}
	return faults
}
