package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/presence"
	"github.com/soloist-go/soloist/internal/desk"
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
	return &Fleet{Differs: []string{"the replicas cannot be shown: correct or delete " + presence.Name(a.Settings.App) + ": " + format.Error(err)}}
}

// FleetOf compares the replicas of a reading. Those that are up count; if none is, the one
// that was seen last.
func FleetOf(a *app.App, r presence.Reading, all []desk.Status) *Fleet {
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
func interruptedOn(all []desk.Status) map[string]time.Time {
	lost := map[string]time.Time{}
	for i := range all {
		st, r := &all[i], &all[i].Record.Run
		ended := st.Err == nil && st.Lease != "" && st.Record.MayRun() && runState(&st.Record, st.Lease) == interrupted
		if ended && r.Claimed.After(lost[r.Replica]) {
			lost[r.Replica] = r.Claimed
		}
	}
	return lost
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

// counts reports whether a replica runs ticks.
func counts(s presence.State) bool { return s == presence.Up || s == presence.Asleep }

// counted are the names of the replicas that say what is in force.
func (f *Fleet) counted() (names []string) {
	last := -1
	for i, r := range f.Replicas {
		if counts(r.State) {
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

// differsIn says where the settings of a job are not the same everywhere.
func (f *Fleet) differsIn(job string) (notes []string) {
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
		for _, text := range f.differsIn(job) {
			n.Differ(job, text)
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

// A Replica is one replica of the app, by what it has written of itself last.
type Replica struct {
	Name     string         `json:"replica"`
	State    presence.State `json:"state"`
	Health   string         `json:"health"`            // ok, degraded, stuck, overrun
	Reasons  []string       `json:"reasons,omitempty"` // why it is not ok
	Version  string         `json:"version,omitempty"`
	Revision string         `json:"revision,omitempty"`
	Platform string         `json:"platform,omitempty"`
	Started  time.Time      `json:"started"`
	Seen     time.Time      `json:"seen,omitzero"` // when it wrote that
	Skew     float64        `json:"skew"`          // seconds that its clock was ahead of the store's
}

// Replicas are the replicas of a reading: first those that are up, then those that should be. lost are the replicas with an
// interrupted run, and when that run began.
func Replicas(r presence.Reading, lost map[string]time.Time) []Replica {
	all := []Replica{}
	if r.Doc == nil {
		return all
	}
	for name, entry := range r.Doc.Replicas {
		state := r.State(entry)
		if begun, ok := lost[name]; ok && state == presence.Up && !entry.Started.After(begun) {
			state = presence.Lost
		}
		all = append(all, Replica{Name: name, State: state, Health: entry.Health, Reasons: entry.Reasons, Version: entry.Version, Revision: entry.Revision,
			Platform: entry.Platform, Started: format.UTC(entry.Started), Seen: format.UTC(entry.Seen), Skew: entry.Skew})
	}
	order := []presence.State{presence.Up, presence.Lost, presence.Silent, presence.Asleep, presence.Left}
	slices.SortFunc(all, func(a, b Replica) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.State), slices.Index(order, b.State)), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// StateWords is the state, and the health of a replica that is up.
func (r Replica) StateWords() string {
	text := string(r.State)
	if r.State == presence.Up && r.Health != "ok" {
		text += ", " + format.Line(r.Health)
		if len(r.Reasons) > 0 {
			text += ": " + format.Line(strings.Join(r.Reasons, "; "))
		}
	}
	return text
}

// Tone is the colour of the state in a table.
func (r Replica) Tone() format.Tone {
	switch {
	case r.State == presence.Up && r.Health != "ok":
		return format.Red
	case r.State == presence.Silent, r.State == presence.Lost:
		return format.Yellow
	}
	return format.Normal
}

// VersionWords is what runs there.
func (r Replica) VersionWords() string {
	return format.Join(format.Line(r.Version), format.Line(r.Revision))
}

// SkewWords is how far its clock is off.
func (r Replica) SkewWords() string {
	d := time.Duration(r.Skew * float64(time.Second)).Round(100 * time.Millisecond)
	switch {
	case d > 0:
		return fmt.Sprint(d, " ahead")
	case d < 0:
		return fmt.Sprint(-d, " behind")
	}
	return "-"
}

// ProgramsAdvice is what to do about what [Programs] says.
const ProgramsAdvice = "give each program a SOLOIST_APP of its own"

// Programs says that other programs use the name of this app, and which jobs they have in common: the record of such a job
// gives each tick to one of them. Versions of one program have one path, so a deployment is not meant, and what does not
// know its path is left out. Empty: there is nothing to say.
func Programs(a *app.App, r presence.Reading) string {
	own, digest := a.Work()
	replicas, owners := map[string][]string{}, map[string][]string{} // of programs, and the programs of jobs
	add := func(program, name string, work presence.Work) {
		replicas[program] = append(replicas[program], name)
		for job, d := range work {
			if !slices.Contains(strings.Split(d.Other, ", "), app.Everywhere) && !slices.Contains(owners[job], program) {
				owners[job] = append(owners[job], program)
			}
		}
	}
	self := here
	if a.Serves {
		self = a.Scheduler.Replica
	}
	if app.Path() != "" {
		add(app.Path(), self, own)
	}
	if r.Doc == nil {
		return programsText(replicas, owners)
	}
	for name, entry := range r.Doc.Replicas {
		if !counts(r.State(entry)) {
			continue
		}
		work := r.Doc.Work[entry.Work]
		if entry.Work == digest {
			work = own
		}
		if entry.Program != "" && (entry.Program != app.Path() || name != self) {
			add(entry.Program, name, work)
		}
	}
	return programsText(replicas, owners)
}

func programsText(replicas, owners map[string][]string) string {
	var common []string
	rivals := map[string][]string{}
	for _, job := range slices.Sorted(maps.Keys(owners)) {
		if len(owners[job]) < 2 {
			continue
		}
		common = append(common, job)
		for _, program := range owners[job] {
			rivals[program] = slices.Sorted(slices.Values(replicas[program]))
		}
	}
	if len(common) == 0 {
		return ""
	}
	return "several programs use this app and take each other's ticks of " + format.Names(common) + ": " + sides(rivals)
}

// here names this program among replicas that it is none of.
const here = "this environment"

// sides lists values and who has them: "a on r1; b on r2 and r3".
func sides(values map[string][]string) string {
	keys := slices.SortedFunc(maps.Keys(values), func(a, b string) int { return compareNames(values[a], values[b]) })
	var all []string
	for _, key := range keys {
		all = append(all, cmp.Or(format.Brief(key), "none")+" "+where(values[key]))
	}
	return strings.Join(all, "; ")
}

// where says where something is: "in this environment and on r1, r2".
func where(names []string) string {
	rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == here })
	switch {
	case len(rest) == len(names):
		return "on " + format.Names(rest)
	case len(rest) == 0:
		return "in " + here
	}
	return "in " + here + " and on " + format.Names(rest)
}

// compareNames orders lists of names; this program comes first.
func compareNames(a, b []string) int {
	switch {
	case slices.Contains(a, here):
		return -1
	case slices.Contains(b, here):
		return 1
	}
	return slices.Compare(a, b)
}
