package spread

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A look is what one listing shows.
type look struct {
	members []card          // replicas that are up
	free    []card          // member entries that no replica has
	held    map[holding]int // how many shards it is
	open    []string        // shards that no replica has
}

// A holding is what one replica has of the shards of a group.
type holding struct{ group, replica string }

// A card is the entry of a member.
type card struct {
	entry string // without the app
	etag  string
	rec   record.Record
}

// look lists the entries of the app once.
func (s *Spread) look(ctx context.Context) (look, error) {
	groupOf := map[string]string{}
	for _, g := range s.groups {
		for _, name := range g.names {
			groupOf[name] = g.key
		}
	}
	l := look{held: map[holding]int{}}
	_, err := s.client("").List(ctx, s.c.App, func(name string, e store.Entry) {
		_, entry, _ := strings.Cut(name, "/")
		group := groupOf[entry]
		if group == "" && !strings.HasPrefix(entry, prefix) {
			return
		}
		rec, err := record.Decode(e.Record, s.c.App, entry)
		switch {
		case err != nil: // of a shard, its runner reports it
		case group == "" && e.State.Live():
			l.members = append(l.members, card{entry, e.ETag, rec})
		case group == "":
			l.free = append(l.free, card{entry, e.ETag, rec})
		case e.State.Live() && rec.MayRun():
			l.held[holding{group, rec.Run.Replica}]++
		case !e.State.Live():
			l.open = append(l.open, entry)
		}
	})
	return l, err
}

// same reports whether two looks show the same replicas with as many shards each.
func (l *look) same(other *look) bool {
	return maps.Equal(l.held, other.held) && slices.EqualFunc(l.members, other.members, func(a, b card) bool { return a.entry == b.entry })
}

// of returns the members that have the shards of a group. This replica knows better than any
// listing what it holds.
func (l *look) of(g *Group, self string) (members []member) {
	for _, c := range l.members {
		if !slices.Contains(keysOf(&c.rec), g.key) {
			continue
		}
		m := member{entry: c.entry, replica: c.rec.Run.Replica, held: l.held[holding{g.key, c.rec.Run.Replica}]}
		if c.entry == self {
			m.held = g.held()
		}
		members = append(members, m)
	}
	return members
}

// keysOf returns the groups that a member has.
func keysOf(r *record.Record) []string { return strings.Split(r.Definition.Spec, ",") }

// A member is a replica that is up, as one look at the store has it.
type member struct {
	entry   string // which distinguishes it from all others
	replica string // its name
	held    int    // shards that it holds
}

// target returns how many shards a member is to hold: each of them holds as many as the others, or
// one more. Members that see the same get targets whose sum is the number of shards, so that each
// shard has a place.
//
// Those that hold one more already are to go on with it, so that few shards move. The rest is given
// in the order of the entries: by what they hold it would change with each shard that is acquired.
func target(shards int, self string, members []member) int {
	if len(members) == 0 {
		return shards
	}
	share, extra := shards/len(members), shards%len(members)
	has := func(m member) int {
		if m.held > share {
			return 0
		}
		return 1
	}
	ranked := slices.SortedFunc(slices.Values(members), func(a, b member) int {
		return cmp.Or(cmp.Compare(has(a), has(b)), cmp.Compare(a.entry, b.entry))
	})
	switch rank := slices.IndexFunc(ranked, func(m member) bool { return m.entry == self }); {
	case rank < 0: // it is no member, so that it has no share
		return shards
	case rank < extra:
		share++
	}
	return share
}
