package sim

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// aGroup is the group of the seeds that have one.
const aGroup = "heavy work"

// drawGroup puts two to four jobs into a group, in a third of all seeds. Its dice are its own, so the
// jobs of a seed are what they are without it.
func drawGroup(all []trace.Definition, seed uint64) {
	r := newRoll(seed, 0, "groups")
	some := r.chance(0.55) // of those that have jobs for it
	var fit []*trace.Definition
	for i := range all {
		if d := &all[i]; d.Every > 0 && !d.EveryReplica && !d.ClaimAhead && d.Name != trace.Foreign {
			fit = append(fit, d)
		}
	}
	if !some || len(fit) < 2 {
		return
	}
	slots := pick(r, 1, 1, 2, mostSlots)
	for range min(2+r.below(3), len(fit)) {
		i := r.below(len(fit))
		fit[i].Group, fit[i].Slots = aGroup, slots
		fit = slices.Delete(fit, i, i+1)
	}
}

// nextGroup is the group of a later version of a program: as many of its jobs, and perhaps another limit.
// It leaves the dice as they are.
func nextGroup(all []trace.Definition, dice *roll) {
	r := newRoll(uint64(*dice), 0, "groups")
	slots := pick(r, 1, 2, mostSlots)
	if r.chance(0.5) {
		return
	}
	for i := range all {
		if all[i].Group != "" {
			all[i].Slots = slots
		}
	}
}

// groupsOf are the limits of the groups of some jobs.
func groupsOf(defs []trace.Definition) map[string]int {
	all := map[string]int{}
	for i := range defs {
		if d := &defs[i]; d.Group != "" {
			all[d.Group] = d.Slots
		}
	}
	return all
}

// ofGroup begins the points at which a machine comes by for a slot of a group. They are apart, as
// those of locks are.
const ofGroup = "group "

// groupFaults is what befalls the slots of the group of a seed alone.
func groupFaults(seed uint64, start, end time.Time, jobs []trace.Definition) []plannedFault {
	names := slotsOfGroup(jobs)
	return slotFaults(seed, start, end, names[:min(len(names), groupsOf(jobs)[aGroup])], "group faults", ofGroup)
}

// mostSlots is how many slots a group has in any version of a program.
const mostSlots = 3

// slotsOfGroup are the entries of the slots that the group of some jobs may have.
func slotsOfGroup(jobs []trace.Definition) (names []string) {
	if len(groupsOf(jobs)) == 0 {
		return nil
	}
	for i := range mostSlots {
		names = append(names, entry.OfSlot(entry.Group, i, aGroup))
	}
	return names
}
