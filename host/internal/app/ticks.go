package app

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/schedule"
	"github.com/soloist-go/soloist/internal/ticks"
)

// TicksOf returns the ticks of a job that follows no other one.
func TicksOf(j soloist.Job) (*ticks.Ticks, error) {
	s, err := schedule.Parse(j.Schedule, j.TimeZone, j.Name)
	if err != nil {
		return nil, err
	}
	d := &j.Days
	return ticks.New(s, ticks.Limits{From: d.From, Until: d.Until, Except: d.Except, Only: d.Only, Shift: ticks.Shift(d.Shift)})
}

// First returns the job whose schedule names the ticks of a job. If the job follows others, this is the first job that it follows,
// or the first that this one follows, and so on; else the job itself.
func First(a *App, j soloist.Job) soloist.Job {
	for range a.all { // jobs that follow each other in a circle are refused at the start
		if len(j.After.Jobs) == 0 {
			break
		}
		j = a.find(j.After.Jobs[0])
	}
	return j
}

// TicksFor returns the ticks of a job, also of one that follows others.
func TicksFor(a *App, j soloist.Job) (*ticks.Ticks, error) { return TicksOf(First(a, j)) }

// ZoneOf returns the time zone of a job's schedule, UTC for a singleton.
func ZoneOf(a *App, job string) *time.Location {
	if j, err := a.Job(job); err == nil {
		if t, err := TicksFor(a, j); err == nil {
			return t.Location()
		}
	}
	return time.UTC
}

// ScheduleWarnings returns what people often get wrong about schedules such as the jobs'.
func ScheduleWarnings(jobs []soloist.Job, now time.Time) (all []string) {
	for _, j := range jobs {
		if s, err := schedule.Parse(j.Schedule, j.TimeZone, j.Name); err == nil && len(j.After.Jobs) == 0 {
			for _, text := range s.Warnings(now) {
				all = append(all, j.Name+": "+text)
			}
		}
	}
	return all
}

// ZoneWords says which data of time zones are in use, and how old they are; empty: each job is in UTC.
func (a *App) ZoneWords() string {
	for _, j := range a.Scheduler.Jobs {
		if s, err := schedule.Parse(j.Schedule, j.TimeZone, j.Name); err == nil && slices.ContainsFunc(s.Zones(), func(zone string) bool { return zone != "UTC" }) {
			return schedule.ZoneData(a.Now())
		}
	}
	return ""
}

// idleZone warns of the variable TZ, which other schedulers read, where a job has no time zone.
func idleZone(jobs []soloist.Job) []string {
	zone := os.Getenv("TZ")
	if zone == "" || slices.Contains([]string{"UTC", "Etc/UTC", "GMT", "UTC0"}, strings.TrimPrefix(zone, ":")) {
		return nil
	}
	for _, j := range jobs {
		s, err := schedule.Parse(j.Schedule, j.TimeZone, j.Name)
		if err == nil && j.TimeZone == "" && !strings.Contains(j.Schedule, "TZ=") && !s.Interval() {
			return []string{fmt.Sprintf("TZ is %.60q, which has no effect: a schedule without a time zone is in UTC, such as that of %s; set TimeZone, or %s_TIMEZONE", zone, j.Name, jobPrefix(j.Name))}
		}
	}
	return nil
}

// nextTick returns a function for the next tick after an instant, of any job that an alarm is set for, by the schedules alone.
// Zero: none is to come.
func nextTick(jobs []soloist.Job) (next func(after time.Time) time.Time) {
	var all []*ticks.Ticks
	for _, j := range jobs {
		if t, err := TicksOf(j); err == nil && !j.Paused && !j.EveryReplica {
			all = append(all, t)
		}
	}
	return func(after time.Time) (first time.Time) {
		for _, t := range all {
			if at := t.Next(after); first.IsZero() || at.Before(first) && !at.IsZero() {
				first = at
			}
		}
		return first
	}
}
