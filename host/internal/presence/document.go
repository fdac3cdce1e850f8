package presence

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

const (
	schema   = 1
	keepFor  = time.Hour // an entry that is older is dropped by the next write
	most     = 200       // replicas in the document
	mostWork = 8         // programs with different jobs
	longWork = 64 << 10  // bytes of the jobs of one program; more are left out
	longName = 200       // bytes of a name
	longText = 100       // bytes of any other text
)

// Name returns the name of the document of an app.
func Name(app string) string { return app + "/.replicas" }

// A Document has the replicas of one app.
type Document struct {
	Schema   int                `json:"schema"`
	App      string             `json:"app"`
	Replicas map[string]Replica `json:"replicas,omitzero"` // by their names
	Work     map[string]Work    `json:"work,omitzero"`     // what they run, by Replica.Work; the jobs of a large program are left out
}

// A Replica is what one replica has written about itself. All times are by the store's clock.
type Replica struct {
	ID      string    `json:"id"` // of the process; another one may have the same name
	Started time.Time `json:"started"`
	Seen    time.Time `json:"seen"`          // when it has written this
	Left    time.Time `json:"left,omitzero"` // when it has stopped in an orderly way
	Lost    time.Time `json:"lost,omitzero"` // when another replica has settled a run of it that has no end; it writes no more, or drops this
	Every   int       `json:"every"`         // seconds until it writes again, at the latest
	Woken   bool      `json:"woken,omitzero"`

	Self
}

// Self is what a replica knows of itself.
type Self struct {
	Health   string   `json:"health"`           // in one word
	Reasons  []string `json:"reasons,omitzero"` // why it is not ok: names and fixed words, never the text of an error
	Skew     float64  `json:"skew,omitzero"`    // seconds that its clock is ahead of the store's
	Version  string   `json:"version,omitzero"`
	Revision string   `json:"revision,omitzero"` // of the deployment
	Platform string   `json:"platform,omitzero"`
	Program  string   `json:"program,omitzero"` // the path of its main package, the same in each version; empty: not known
	Work     string   `json:"work,omitzero"`    // the digest of its jobs
}

// Work is what a program runs: the jobs and singletons by their names.
type Work map[string]Settings

// Settings are what the settings of a job or singleton say, as text.
type Settings struct {
	Schedule string `json:"schedule,omitzero"` // with its time zone
	Paused   bool   `json:"paused,omitzero"`
	Other    string `json:"other,omitzero"` // its other settings, as far as they are set
}

// Digest returns a text that differs for different work.
func (w Work) Digest() string {
	b, _ := json.Marshal(w) // has no value that cannot be written; the names are in their order
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// ErrForeign is the error of a document that this program does not understand. It is not
// overwritten.
var ErrForeign = errors.New("the document of replicas is not one that this program understands")

// decode reads a document; no text is an empty one.
func decode(body []byte, app string) (*Document, error) {
	d := &Document{}
	if len(body) == 0 {
		d.Schema, d.App = schema, app
	} else if err := json.Unmarshal(body, d); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if d.Schema != schema || d.App != app {
		return nil, fmt.Errorf("%w: it has schema %d and app %.80q", ErrForeign, d.Schema, d.App)
	}
	for name, r := range d.Replicas {
		if !r.plausible() {
			return nil, fmt.Errorf("%w: a time or a number of the replica %.80q is out of range", ErrForeign, name)
		}
	}
	if d.Replicas == nil {
		d.Replicas = map[string]Replica{}
	}
	return d, nil
}

// plausible reports whether the times can be shown and computed with.
func (r *Replica) plausible() bool {
	for _, at := range []time.Time{r.Started, r.Seen, r.Left, r.Lost} {
		if at.Year() > 9000 || at.Year() < 1970 && !at.IsZero() {
			return false
		}
	}
	return !r.Seen.IsZero() && r.Every > 0 && r.Every <= int(keepFor/time.Second) && math.Abs(r.Skew) < 1e10
}

// put enters a replica with its work, and drops what is too old.
func (d *Document) put(name string, r Replica, work Work) {
	r.clip()
	d.Replicas[clip(name, longName)] = r
	maps.DeleteFunc(d.Replicas, func(_ string, old Replica) bool { return r.Seen.Sub(old.Seen).Abs() > keepFor })
	if b, err := json.Marshal(work); err == nil && len(b) <= longWork {
		if d.Work == nil {
			d.Work = map[string]Work{}
		}
		d.Work[r.Work] = work
	}
}

// lose marks a replica whose run was settled by another one. A process that has its name since then is not meant.
func (d *Document) lose(name string, run, at time.Time) {
	name = clip(name, longName)
	if r, ok := d.Replicas[name]; ok && !r.Started.After(run) {
		r.Lost = at
		d.Replicas[name] = r
	}
}

func (r *Replica) clip() {
	for _, text := range []*string{&r.Health, &r.Version, &r.Revision, &r.Platform, &r.Program} {
		*text = clip(*text, longText)
	}
	r.Reasons = slices.Clone(r.Reasons[:min(len(r.Reasons), 8)])
	for i := range r.Reasons {
		r.Reasons[i] = clip(r.Reasons[i], longText)
	}
}

// clip shortens a text to so many bytes at most.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return string(bytes.ToValidUTF8([]byte(text[:most]), nil))
}

// encode returns the document as JSON. It keeps those seen last, as many as fit.
func (d *Document) encode() ([]byte, error) {
	names := slices.SortedFunc(maps.Keys(d.Replicas), func(a, b string) int {
		return cmp.Or(d.Replicas[b].Seen.Compare(d.Replicas[a].Seen), cmp.Compare(a, b))
	})
	work := d.workOf(names)
	for n := min(len(names), most); ; n /= 2 {
		kept := Document{Schema: schema, App: d.App, Replicas: map[string]Replica{}, Work: work}
		for _, name := range names[:n] {
			kept.Replicas[name] = d.Replicas[name]
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false) // which may make a text six times as long
		if err := e.Encode(kept); err != nil || b.Len() <= store.MaxDocument {
			return b.Bytes(), err
		}
		work = nil // and then half of the replicas
	}
}

// workOf returns the work of these replicas, the first ones first.
func (d *Document) workOf(names []string) map[string]Work {
	kept := map[string]Work{}
	for _, name := range names {
		digest := d.Replicas[name].Work
		if w, ok := d.Work[digest]; ok && len(kept) < mostWork {
			kept[digest] = w
		}
	}
	return kept
}
