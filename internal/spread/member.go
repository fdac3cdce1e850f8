package spread

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/record"
)

// prefix begins the names of member entries. No job has such a name.
const prefix = "0-member-"

// A membership is a lease on a member entry: as long as it lasts, other replicas count this one.
type membership struct {
	entry   string
	session *lease.Session
}

// join acquires a member entry: the entry of a replica that is gone, or else a new entry. So
// there are as many as there were replicas within one lease at most.
func (s *Spread) join(ctx context.Context, free []card) error {
	for len(free) > 0 {
		i := int(s.random(int64(len(free)))) // those that join at the same time seldom try the same one
		err := s.enter(ctx, free[i])
		free = slices.Delete(free, i, i+1)
		if err == nil || !lease.Definite(err) { // Definite: another replica was first
			return err
		}
	}
	c, err := s.create(ctx)
	for n := 0; n < sameIDs && errors.Is(err, fs.ErrExist); n++ {
		c, err = s.create(ctx)
	}
	if err != nil {
		return err
	}
	return s.enter(ctx, c)
}

// sameIDs is how often in a row a replica draws another id if an entry has it already, as another process
// of the same name may.
const sameIDs = 3

// create creates a member entry with a random id.
func (s *Spread) create(ctx context.Context) (card, error) {
	c, now := card{entry: prefix + strconv.FormatInt(s.random(1<<50), 36)}, s.c.Clock.Best().UTC()
	c.rec = record.Record{App: s.c.App, Job: c.entry, Created: now, Token: 1, Watermark: now, Run: record.Run{Status: record.Idle}}
	s.write(&c.rec)
	b, err := c.rec.Encode()
	if err != nil {
		return c, err
	}
	entry, err := s.client(c.entry).Create(ctx, b)
	c.etag = entry.ETag
	return c, err
}

// random returns a number from 0 to n-1.
func (s *Spread) random(n int64) int64 { return int64(s.c.IDs.UpTo(time.Duration(n - 1))) }

// enter acquires one member entry, and writes whose it is.
func (s *Spread) enter(ctx context.Context, c card) error {
	client := s.client(c.entry)
	session, err := lease.Hold(ctx, client, c.etag, &c.rec, client.Length, func(error) {}, func(event.Event) {})
	if err != nil {
		return err
	}
	s.membership = membership{c.entry, session}
	if c.rec.Run.Replica == s.c.Replica && c.rec.Definition.Spec == s.keys() {
		return nil
	}
	if err := session.WriteConfirmed(session.Context(), s.write); err != nil {
		s.leave()
		return err
	}
	return nil
}

// write drafts what other replicas read of this one. A member entry has no definition, so that its place
// in the record serves for the keys of the groups.
func (s *Spread) write(r *record.Record) {
	r.Run.Replica, r.Definition.Spec = s.c.Replica, s.keys()
}

// keys returns the keys of all groups of this replica, as a member's record has them.
func (s *Spread) keys() string {
	keys := make([]string, len(s.groups))
	for i, g := range s.groups {
		keys[i] = g.key
	}
	return strings.Join(keys, ",")
}

// leave releases the member entry, if this replica has one, for the next replica that joins. What
// is left of a lease that was lost is released, too: that changes nothing for its next holder.
func (s *Spread) leave() {
	session := s.membership.session
	if session == nil {
		return
	}
	session.Stop()
	session.Lose(nil)
	_ = session.Release(context.Background()) // else it expires
	s.membership = membership{}
}

// lost is closed when the membership is lost, nil if there is none.
func (m *membership) lost() <-chan struct{} {
	if m.session == nil {
		return nil
	}
	return m.session.Context().Done()
}

// client returns the client of a member entry.
func (s *Spread) client(entry string) *lease.Client {
	return &lease.Client{Store: s.c.Store, Name: s.c.App + "/" + entry, Length: s.length, Clock: s.c.Clock, Jitter: s.c.Jitter}
}
