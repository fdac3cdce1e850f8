package judge

import "time"

// A report says that a property does not hold at a time.
type report func(at time.Time, format string, args ...any)

// A property is something that holds in every log.
type property struct {
	name  string
	judge func(w *world, bad report)
}

// ofRuns judges each run: no is what holds for none of them.
func ofRuns(no func(w *world, r *run) bool, what string) func(*world, report) {
	return func(w *world, bad report) {
		for _, r := range w.runs {
			if no(w, r) {
				bad(r.Time, "%s %s", r, what)
			}
		}
	}
}
