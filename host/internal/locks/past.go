package locks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A Past is the record of one slot of a lock or a group, or of one key of what is done once.
type Past struct {
	Name   string // for people: "lock:tenant-42", "lock:pool slot 1", "once:migrate for v2"
	Kind   string
	State  string // held or free; broken: the record cannot be read; of what is done once, its State
	Record record.Record
	Err    error // why the record cannot be read
}

// A Named is what a text such as "lock:tenant-42" names.
type Named struct {
	Kind entry.Kind
	Name string
}

// NamedBy returns what a text names. It returns false if the text can only be the name of a job.
func NamedBy(text string) (Named, bool) {
	kind, name, ok := strings.Cut(text, ":")
	n := Named{entry.Kind(kind), name}
	return n, ok && slices.Contains([]entry.Kind{entry.Lock, entry.Group, entry.Once}, n.Kind)
}

func (n Named) String() string { return string(n.Kind) + ":" + n.Name }

// Check returns what is wrong with the name, nil if nothing is.
func (n Named) Check() error {
	err := entry.Check(n.Name)
	if n.Kind == entry.Once {
		err = entry.CheckOnce(n.Name)
	}
	if err != nil {
		return fmt.Errorf("the name after %s: is %.80q: %w", n.Kind, n.Name, err)
	}
	return nil
}

// PastOf lists an app and returns the records of that name, in the order of slots and keys.
func PastOf(ctx context.Context, from store.Lister, app string, named Named) (all []Past, err error) {
	slots := map[string]int{}
	err = walk(ctx, from, app, func(n entry.Name, known bool, read func() slot) {
		if known && n.Kind == named.Kind && (n.Name == named.Name || n.Kind != entry.Once && n.Name == entry.Shown(named.Name)) {
			p := pastOf(named, n.Number, read())
			slots[p.Name] = n.Number
			all = append(all, p)
		}
	})
	slices.SortFunc(all, func(a, b Past) int { return slots[a.Name] - slots[b.Name] })
	return all, err
}

// pastOf names the runs of a record as Run.ID does.
func pastOf(named Named, number int, s slot) Past {
	p := Past{Name: named.String(), Kind: string(named.Kind), State: "free", Record: s.rec, Err: s.err}
	key := ""
	if s.live {
		p.State = "held"
	}
	if named.Kind == entry.Once {
		o := onceOf(named.Name, s)
		key, p.State = o.Key, string(o.State)
		p.Name += " for " + key
	} else if number > 0 {
		p.Name += fmt.Sprintf(" slot %d", number)
	}
	if s.err != nil {
		p.State = "broken"
	}
	p.Record.History = slices.Clone(s.rec.History)
	for i := range p.Record.History {
		p.Record.History[i].Request, p.Record.History[i].Tick = key, time.Time{}
	}
	return p
}
