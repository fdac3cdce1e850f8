package view

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/presence"
)

// A Fleet is what the replicas of the app run, compared with each other and with this
// program. A nil Fleet knows of no replica.
type Fleet struct {
	At       time.Time // of the reading, by the store's clock
	Replicas []Replica
	Differs  []string // what is not the same on all of them, besides the settings of jobs

	parties []party // those that are compared: one for each set of jobs
}

// A party is the replicas that run the same jobs.
type party struct {
	names []string      // here is this program, if it is no replica
	work  presence.Work // nil: not known in detail
}

// UnreadFleet stands in for the replicas where the document is not one of replicas. It says
// what an operator does about it.
func UnreadFleet(a *app.App, err error) *Fleet {
	return &Fleet{Differs: []string{"the replicas cannot be shown: correct or delete " + presence.Name(a.Settings.App) + ": " + format.Line(err.Error())}}
}

// FleetOf compares the replicas of a reading. Those that are up count; if none is, the one
// that was seen last.
func FleetOf(a *app.App, r presence.Reading, all []soloist.JobStatus) *Fleet {
	f := &Fleet{At: r.At, Replicas: Replicas(r, interruptedOn(all))}
	count := f.counted()
	if len(count) == 0 {
		return f
	}
	versions, digests := map[string][]string{}, map[string][]string{}
	if !a.Serves {
		_, digest := a.Work()
		versions[app.Version()], digests[digest] = []string{here}, []string{here}
	}
	for _, name := range count {
		entry := r.Doc.Replicas[name]
		versions[entry.Version] = append(versions[entry.Version], name)
		digests[entry.Work] = append(digests[entry.Work], name)
	}
	delete(versions, "") // not known
	if len(versions) > 1 {
		f.Differs = append(f.Differs, "versions differ: "+sides(versions))
	}
	if text := Programs(a, r); text != "" {
		f.Differs = append(f.Differs, text+": "+ProgramsAdvice)
	}
	f.gather(a, r, digests)
	f.compareJobs(a)
	return f
}

// interruptedOn are the replicas with a run that is interrupted now, and when the newest of them began.
func interruptedOn(all []soloist.JobStatus) map[string]time.Time {
	lost := map[string]time.Time{}
	for i := range all {
		if r := &all[i].Record.Run; isInterrupted(&all[i]) && r.Claimed.After(lost[r.Replica]) {
			lost[r.Replica] = r.Claimed
		}
	}
	return lost
}

// isInterrupted reports whether the lease of a run has ended, and no replica has settled it yet.
func isInterrupted(st *soloist.JobStatus) bool {
	return st.Err == nil && st.Lease != "" && MayRun(&st.Record) && runState(&st.Record, st.Lease) == interrupted
}

// seen is when the process that began a run wrote last that it was up; zero: that is not known.
func (f *Fleet) seen(replica string, begun time.Time) time.Time {
	if f != nil {
		for _, r := range f.Replicas {
			if r.Name == replica && !r.Started.After(begun) {
				return r.Seen
			}
		}
	}
	return time.Time{}
}

// counted are the names of the replicas that say what is in force.
func (f *Fleet) counted() (names []string) {
	last := -1
	for i, r := range f.Replicas {
		if r.State == presence.Up || r.State == presence.Asleep {
			names = append(names, r.Name)
		}
		if last < 0 || r.Seen.After(f.Replicas[last].Seen) {
			last = i
		}
	}
	if len(names) == 0 && last >= 0 {
		names = append(names, f.Replicas[last].Name)
	}
	return names
}

// gather makes the parties from the names by the digests of what they run.
func (f *Fleet) gather(a *app.App, r presence.Reading, digests map[string][]string) {
	own, digest := a.Work()
	for d, names := range digests {
		p := party{names, r.Doc.Work[d]}
		if d == digest {
			p.work = own
		}
		f.parties = append(f.parties, p)
	}
	slices.SortFunc(f.parties, func(a, b party) int { return compareNames(a.names, b.names) })
}

// compareJobs finds the jobs that some of them do not have, except for this program's jobs,
// which are shown with what differs in them.
func (f *Fleet) compareJobs(a *app.App) {
	if len(f.parties) < 2 {
		return
	}
	own, _ := a.Work()
	some := map[string][]string{} // jobs, by who does and who does not have them
	for _, p := range f.parties {
		if p.work == nil {
			f.Differs = append(f.Differs, "jobs or their settings differ, and there are too many of them to compare: "+f.partyWords())
			return
		}
		for job := range p.work {
			has, lacks := f.namesWith(job, true), f.namesWith(job, false)
			if _, known := own[job]; known || len(lacks) == 0 {
				continue
			}
			key := "known " + where(has) + ", and not " + where(lacks)
			if !slices.Contains(some[key], job) {
				some[key] = append(some[key], job)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(some)) {
		slices.Sort(some[key])
		f.Differs = append(f.Differs, "jobs differ: "+format.Names(some[key])+" "+key)
	}
}

// partyWords are the parties, one after the other.
func (f *Fleet) partyWords() string {
	var all []string
	for _, p := range f.parties {
		all = append(all, where(p.names))
	}
	return strings.Join(all, " / ")
}

// namesWith are the parties that have a job, or those that do not.
func (f *Fleet) namesWith(job string, has bool) (names []string) {
	for _, p := range f.parties {
		if _, ok := p.work[job]; ok == has && p.work != nil {
			names = append(names, p.names...)
		}
	}
	return names
}

// DiffersIn says where the settings of a job are not the same everywhere.
func (f *Fleet) DiffersIn(job string) (notes []string) {
	if f == nil || len(f.parties) < 2 {
		return nil
	}
	schedules, pauses, others := map[string][]string{}, map[string][]string{}, map[string][]string{}
	for _, p := range f.parties {
		d, ok := p.work[job]
		if !ok {
			continue
		}
		schedules[d.Schedule] = append(schedules[d.Schedule], p.names...)
		pauses[strconv.FormatBool(d.Paused)] = append(pauses[strconv.FormatBool(d.Paused)], p.names...)
		others[d.Other] = append(others[d.Other], p.names...)
	}
	if without := f.namesWith(job, false); len(without) > 0 {
		notes = append(notes, "not known "+where(without))
	}
	for _, field := range []struct {
		words  string
		values map[string][]string
	}{{"schedules differ: ", schedules}, {"paused by settings: ", pauses}, {"settings differ: ", others}} {
		if len(field.values) > 1 {
			notes = append(notes, field.words+sides(field.values))
		}
	}
	return notes
}

// All says what differs between the replicas, and in which jobs of this program.
func (f *Fleet) All(a *app.App) []string {
	var n Notes
	own, _ := a.Work()
	for _, job := range slices.Sorted(maps.Keys(own)) {
		for _, text := range f.DiffersIn(job) {
			n.Add(job, text)
		}
	}
	return append(slices.Clip(f.Differs), n.Lines()...)
}

// paused reports whether the settings of a replica that counts pause a job; known: whether
// that is known.
func (f *Fleet) paused(job string) (paused, known bool) {
	if f == nil {
		return false, false
	}
	for _, p := range f.parties {
		if d, ok := p.work[job]; ok && !slices.Equal(p.names, []string{here}) {
			paused, known = paused || d.Paused, true
		}
	}
	return paused, known
}
