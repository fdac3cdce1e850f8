package runs

import (
	"slices"
)

// JudgeLeader looks at who led, where the log has a start and an end for each time that a replica leads: Delays and Faults
// are from each kill to the next start, Lost are the kills that none followed, and Twice are the starts while another
// replica led. A window that has more than one run for each kill, and one, had changes of the leader without a reason.
func JudgeLeader(lines []Line, w Window) Report {
	r := Report{Shares: map[string]int{}}
	for _, l := range lines {
		switch l.What {
		case Start:
			r.Runs++
			r.Shares[l.Replica]++
			if leads(lines, l) {
				r.Twice++
			}
		case Kill:
			f := follow(lines, l, w)
			r.Ticks++
			r.Faults = append(r.Faults, f)
			if f.Next < 0 {
				r.Lost++
			} else {
				r.Delays = append(r.Delays, f.Next)
			}
		}
	}
	slices.Sort(r.Delays)
	return r
}

// leads reports whether another replica leads when one starts to.
func leads(lines []Line, start Line) bool {
	over := func(of Line) bool {
		return slices.ContainsFunc(lines, func(l Line) bool {
			return l.Pid == of.Pid && (l.What == End || l.What == Kill) && !l.Wall.Before(of.Wall) && !l.Wall.After(start.Wall)
		})
	}
	return slices.ContainsFunc(lines, func(l Line) bool {
		return l.What == Start && l.Pid != start.Pid && l.Wall.Before(start.Wall) && !over(l)
	})
}

// Changes is how often the leader changed without a kill.
func (r Report) Changes() int { return max(0, r.Runs-1-len(r.Faults)) }
