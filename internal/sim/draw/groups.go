package draw

import (
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// AGroup is the group of the seeds that have one.
const AGroup = "heavy work"

// drawGroup puts two to four jobs into a group, in a third of all seeds. Its dice are its own, so the
// jobs of a seed are what they are without it.
func drawGroup(all []trace.Definition, seed uint64) {
	r := New(seed, 0, "groups")
	some := r.Chance(0.55) // of those that have jobs for it
	var fit []*trace.Definition
	for i := range all {
		if d := &all[i]; d.Every > 0 && !d.EveryReplica && !d.ClaimAhead && d.Name != trace.Foreign {
			fit = append(fit, d)
		}
	}
	if !some || len(fit) < 2 {
		return
	}
	slots := Pick(r, 1, 1, 2, mostSlots)
	for range min(2+r.Below(3), len(fit)) {
		i := r.Below(len(fit))
		fit[i].Group, fit[i].Slots = AGroup, slots
		fit = slices.Delete(fit, i, i+1)
	}
}

// nextGroup is the group of a later version of a program: as many of its jobs, and perhaps another limit.
// It leaves the dice as they are.
func nextGroup(all []trace.Definition, dice *Roll) {
	r := New(uint64(*dice), 0, "groups")
	slots := Pick(r, 1, 2, mostSlots)
	if r.Chance(0.5) {
		return
	}
	for i := range all {
		if all[i].Group != "" {
			all[i].Slots = slots
		}
	}
}

// GroupsOf are the limits of the groups of some jobs.
func GroupsOf(defs []trace.Definition) map[string]int {
	all := map[string]int{}
	for i := range defs {
		if d := &defs[i]; d.Group != "" {
			all[d.Group] = d.Slots
		}
	}
	return all
}

// OfGroup is the prefix of the points that a machine passes in its calls for a slot of a group. They have
// names of their own for the same reason as [OfLock].
const OfGroup = "group "

// GroupFaults are the faults that hit only the slots of a seed's group.
func GroupFaults(seed uint64, start, end time.Time, jobs []trace.Definition) []PlannedFault {
	names := SlotsOfGroup(jobs)
	return slotFaults(seed, start, end, names[:min(len(names), GroupsOf(jobs)[AGroup])], "group faults", OfGroup)
}

// mostSlots is how many slots a group has in any version of a program.
const mostSlots = 3

// SlotsOfGroup are the entries of the slots that the group of some jobs may have.
func SlotsOfGroup(jobs []trace.Definition) (names []string) {
	if len(GroupsOf(jobs)) == 0 {
		return nil
	}
	for i := range mostSlots {
		names = append(names, entry.OfSlot(entry.Group, i, AGroup))
	}
	return names
}

// OfMember is the prefix of the points that a machine passes in its calls for a replica's member entry.
// They have names of their own for the same reason as [OfLock].
const OfMember = "member "

// MemberFaults are crashes, suspensions and stops of replicas in their calls for their member entries.
func MemberFaults(seed uint64, start, end time.Time, jobs []trace.Definition) (all []PlannedFault) {
	if !slices.ContainsFunc(jobs, func(d trace.Definition) bool { return d.Spread() }) {
		return nil
	}
	all = slotFaults(seed, start, end, []string{""}, "member faults", OfMember)
	return slices.DeleteFunc(all, func(d PlannedFault) bool { return !strings.HasPrefix(d.Job, OfMember) })
}
