package spread

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/soloist-go/soloist/store"
)

// A look is what one listing shows.
type look struct {
	members []card         // replicas that are up
	free    []card         // member entries that no replica has
	held    map[string]int // shards of a group, by the group's key and the replica that holds them
	open    []string       // shards that no replica has
}

// A card is the entry of a member.
type card struct {
	entry string // without the app
	etag  string
	rec   store.Record
}

// look lists the entries of the app once.
func (s *Spread) look(ctx context.Context) (look, error) {
	groupOf := map[string]string{}
	for _, g := range s.groups {
		for _, name := range g.names {
			groupOf[name] = g.key
		}
	}
	l := look{held: map[string]int{}}
	_, err := s.client("").List(ctx, s.c.App, func(name string, e store.Entry) {
		_, entry, _ := strings.Cut(name, "/")
		group := groupOf[entry]
		if group == "" && !strings.HasPrefix(entry, prefix) {
			return
		}
		rec, err := store.DecodeRecord(e.Record, s.c.App, entry)
		switch {
		case err != nil: // of a shard, its runner reports it
		case group == "" && e.State.Live():
			l.members = append(l.members, card{entry, e.ETag, rec})
		case group == "":
			l.free = append(l.free, card{entry, e.ETag, rec})
		case e.State.Live() && rec.MayRun():
			l.held[holding(group, rec.Run.Replica)]++
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

// holding is the key of look.held.
func holding(group, replica string) string { return group + " " + replica }

// of returns the members that have the shards of a group. This replica knows better than any
// listing what it holds.
func (l *look) of(g *Group, self string) (members []member) {
	for _, c := range l.members {
		if !slices.Contains(keysOf(&c.rec), g.key) {
			continue
		}
		m := member{entry: c.entry, replica: c.rec.Run.Replica, held: l.held[holding(g.key, c.rec.Run.Replica)]}
		if c.entry == self {
			m.held = g.held()
		}
		members = append(members, m)
	}
	return members
}

// keysOf returns the groups that a member has.
func keysOf(r *store.Record) []string { return strings.Split(r.Definition.Spec, ",") }
