package locks

import (
	"strconv"
	"strings"
)

// Shown is the part of a reading that an answer has.
type Shown struct {
	Locks     []Lock `json:"locks"`               // those that are held first, then those used last
	MoreLocks int    `json:"moreLocks,omitempty"` // how many are left out
	Once      []Once `json:"once"`                // the newest first
	MoreOnce  int    `json:"moreOnce,omitempty"`  // how many are left out
	LocksNote string `json:"locksNote,omitempty"` // why some of them are not known
}

// Empty reports whether there is nothing to show.
func (r Reading) Empty() bool { return len(r.Locks)+len(r.Once) == 0 }

// Shown returns at most so many of each.
func (r Reading) Shown(most int) Shown {
	locks, once := r.Locks[:min(most, len(r.Locks))], r.Once[:min(most, len(r.Once))]
	s := Shown{Locks: append([]Lock{}, locks...), MoreLocks: len(r.Locks) - len(locks), Once: append([]Once{}, once...), MoreOnce: len(r.Once) - len(once)}
	if r.Unread > 0 {
		s.LocksNote = "entries of locks that were not read for this: " + strconv.Itoa(r.Unread)
	}
	return s
}

// Matching returns what has a text in its name, its key or the name of a replica, in any case.
func (r Reading) Matching(text string) Reading {
	text = strings.ToLower(text)
	has := func(texts ...string) bool { return strings.Contains(strings.ToLower(strings.Join(texts, "\n")), text) }
	out := Reading{Listed: r.Listed, Unread: r.Unread}
	for _, l := range r.Locks {
		texts := []string{l.Name}
		for _, h := range l.Holders {
			texts = append(texts, h.Replica)
		}
		if has(texts...) {
			out.Locks = append(out.Locks, l)
		}
	}
	for _, o := range r.Once {
		if has(o.Name, o.Key, o.Replica) {
			out.Once = append(out.Once, o)
		}
	}
	return out
}
