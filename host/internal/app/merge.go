package app

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
)

// Merged is the report of two passes, of which the second has ended last: all that they ran, and of each job what the one
// says of the rest that knows of a later tick. The second may have begun first.
func Merged(first, second soloist.Report) soloist.Report {
	second.Next = time.Time{}
	for i := range second.Jobs {
		s := &second.Jobs[i]
		n := slices.IndexFunc(first.Jobs, func(j soloist.JobReport) bool { return j.Job == s.Job })
		if n >= 0 {
			f := first.Jobs[n]
			ran := append(slices.Clip(f.Ran), s.Ran...)
			if Newer(f.Next, s.Next) {
				*s = f
			}
			s.Ran = ran
		}
		if !s.Next.IsZero() && s.Awaits == "" && (second.Next.IsZero() || s.Next.Before(second.Next)) {
			second.Next = s.Next
		}
	}
	return second
}

// Newer reports whether a report was made after another one of the same job, by the next tick of each: zero is never.
func Newer(next, other time.Time) bool {
	return !other.IsZero() && (next.IsZero() || next.After(other))
}
