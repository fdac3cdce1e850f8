package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/presence"
)

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
