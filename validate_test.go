package soloist_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
)

func nothing(context.Context, *soloist.Run) error { return nil }

func TestAllMistakesAreToldAtOnce(t *testing.T) {
	s := &soloist.Scheduler{
		App:   "Größe",
		Grace: -time.Second,
		Store: &local.Memory{},
		Jobs: []soloist.Job{
			{Name: "Upper", Schedule: "@hourly", Do: nothing},
			{Name: "tick", Schedule: "@hourly", Do: nothing},
			{Name: "empty"},
			{Name: "twice", Schedule: "@hourly", Do: nothing},
			{Name: "negative", Schedule: "@hourly", Do: nothing, Timeout: -1, Window: -time.Hour},
			{Name: "long", Schedule: "@hourly", Do: nothing, Lease: 2 * time.Hour},
			{Name: "odd", Schedule: "@hourly", Do: nothing, Lease: 1500 * time.Millisecond},
			{Name: "policy", Schedule: "@hourly", Do: nothing, Missed: "sometimes", Interrupted: "maybe"},
			{Name: "zone", Schedule: "@hourly", Do: nothing, TimeZone: "Mars/Olympus"},
			{Name: "both", Schedule: "61 * * * *", Do: nothing, TimeZone: "No/Where"},
			{Name: "never", Schedule: "0 0 30 2 *", Do: nothing},
		},
		Singletons: []soloist.Singleton{{Name: "twice", Do: nothing}, {Name: "lead", Backoff: -1}},
	}
	err := s.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`App is "Größe"`, "Grace is -1s", `"Upper"`, `"tick": allowed is any but tick, warmup`,
		`job "empty": Schedule is ""`, "Do is nil", `"twice" is used more than once`,
		"Timeout is -1ns", "Window is -1h0m0s", "Lease is 2h0m0s: allowed is whole seconds from 1s to 1m0s",
		"Lease is 1.5s", `Missed is "sometimes": allowed is RunLatest, RunAll or SkipMissed`,
		`Interrupted is "maybe"`, "Mars/Olympus", "No/Where", `"61 * * * *"`, "minute", `job "never"`, `singleton "lead": Do is nil`, "Backoff is -1ns",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not told in:\n%v", want, err)
		}
	}
}

func TestNothingRunsOnAMistake(t *testing.T) {
	for name, s := range map[string]*soloist.Scheduler{
		"no store": {Jobs: []soloist.Job{{Name: "a", Schedule: "@hourly", Do: nothing}}},
		"no work":  {Store: &local.Memory{}},
	} {
		if err := s.Run(t.Context()); err == nil {
			t.Errorf("%s: Run says nothing", name)
		}
		if _, err := s.RunDue(t.Context()); err == nil {
			t.Errorf("%s: RunDue says nothing", name)
		}
		if _, err := s.Status(t.Context()); err == nil {
			t.Errorf("%s: Status says nothing", name)
		}
	}
}

// Whatever is typed into a field is answered with an error or accepted.
func FuzzValidate(f *testing.F) {
	f.Add("job", "* * * * *", "")
	f.Add("Job", "TZ=UTC", "Europe/Berlin")
	f.Add("", "@every -5s", "\x00")
	f.Fuzz(func(t *testing.T, name, text, zone string) {
		s := &soloist.Scheduler{Store: &local.Memory{}, App: name,
			Jobs: []soloist.Job{{Name: name, Schedule: text, TimeZone: zone, Do: nothing}}}
		if err := s.Validate(); err != nil && strings.ContainsRune(err.Error(), 0) {
			t.Errorf("a NUL byte in %q", err)
		}
	})
}
