package check_test

import "github.com/soloist-go/soloist/internal/sim/check"

var _ = plant(stories{
	"":           {func(s *story) { s.weighs(1000, 1<<20); s.weighs(11_000, 1<<20+100_000) }},
	"I12 memory": {func(s *story) { s.weighs(1000, 1<<20); s.weighs(11_000, 1<<20+1_230_000) }},
})

// weighs is a run that has saved so often, and the memory in use.
func (s *story) weighs(saves int, size int64) {
	s.add(check.Event{What: check.Weighed, Replica: "a", Job: "job", Token: 7, Time: at(float64(saves) / 10), Saves: saves, Size: size})
}
