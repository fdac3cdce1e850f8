package view

import (
	"maps"
	"slices"
	"strings"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/presence"
)

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
			if !strings.HasPrefix(d.Other, app.Everywhere) && !slices.Contains(owners[job], program) {
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
	for name, entry := range entries(r) {
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

// entries are the replicas that run ticks.
func entries(r presence.Reading) map[string]presence.Replica {
	up := map[string]presence.Replica{}
	if r.Doc != nil {
		maps.Copy(up, r.Doc.Replicas)
	}
	maps.DeleteFunc(up, func(_ string, entry presence.Replica) bool {
		state := r.State(entry)
		return state != presence.Up && state != presence.Asleep
	})
	return up
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
