package alarm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	mostReceived = 32               // in one call; queues of Azure return no more
	clearTime    = 15 * time.Second // the next pass clears what is left after that
	hiding       = 5 * time.Second  // a message that is not deleted is visible again after that
)

// A sweep is one call of Clear.
type sweep struct {
	mailbox
	began time.Time
	note  func(context.Context) (Note, error)

	another func(m message, inserted time.Time) bool // whether a message is for another version

	seen    map[string]bool // those that are left, by their IDs
	foreign int             // messages of other apps
	other   string          // the last of these apps
	later   int             // messages for another version
	deleted int
}

// run receives and deletes until nothing is left to delete, or the time is over.
func (s *sweep) run(ctx context.Context) error {
	defer s.tell()
	for begin := time.Now(); time.Since(begin) < clearTime; {
		if more, err := s.round(ctx); err != nil || !more {
			return err
		}
	}
	return nil
}

func (s *sweep) receive(ctx context.Context) ([]Message, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.queue.Receive(ctx, mostReceived, hiding)
}

// round receives some messages, and deletes those that are done with. It reports whether there may be further ones.
func (s *sweep) round(ctx context.Context) (more bool, err error) {
	got, err := s.receive(ctx)
	if err != nil {
		return false, err
	}
	var done []Receipt
	var early []earlyMessage
	for i := range got {
		if s.isDone(&got[i]) {
			done = append(done, got[i].Receipt)
		} else if e, isEarly := s.early(&got[i]); isEarly {
			early = append(early, e)
		} else {
			more = s.see(got[i].ID) || more
		}
	}
	deleted, err := s.removeAll(ctx, done)
	s.deleted += deleted
	put, left := s.putOff(ctx, early)
	for _, id := range left {
		more = s.see(id) || more
	}
	moved, unmoved := s.removeAll(ctx, put)
	return more || deleted+moved > 0, errors.Join(err, unmoved)
}

// see notes that a message is left, and reports whether that is new.
func (s *sweep) see(id string) bool {
	was := s.seen[id]
	s.seen[id] = true
	return !was
}

// isDone reports whether a message is to be deleted, and says in the log what is wrong with it.
func (s *sweep) isDone(got *Message) bool {
	m, isAlarm := decodeMessage(got)
	if isAlarm && m.App != s.app {
		if !s.seen[got.ID] {
			s.foreign, s.other = s.foreign+1, m.App
		}
		return false
	}
	visible := got.Inserted
	if isAlarm && m.At.After(visible) {
		visible = m.At
	}
	if !visible.Add(margin).Before(s.began) {
		return false
	}
	if isAlarm && s.another(m, got.Inserted) {
		if !s.seen[got.ID] {
			s.later++
		}
		return false
	}
	if !isAlarm {
		s.log.Warn("a message that is no alarm was in the queue of alarms, and is deleted", "text", clip(got.Body))
	}
	return true
}

// tell logs what only a person can put right.
func (s *sweep) tell() {
	if s.foreign > 0 {
		s.log.Warn("the queue of alarms has messages of another app, which keep this one up: "+
			"give each app a queue of its own, by SOLOIST_ALARM_QUEUE, and delete those messages if the app is gone", "messages", s.foreign, "app", clip([]byte(s.other)))
	}
	if s.later > 0 {
		s.log.Info("a message of the command wake is left to the version of the program that was deployed, which has other jobs or settings", "messages", s.later)
	}
}

// clip returns the beginning of a text that may be anything.
func clip(b []byte) string {
	const most = 100
	if len(b) > most {
		b = b[:most]
	}
	return fmt.Sprintf("%+q", b)
}

// A message that is visible before its time would have the platform start a replica at each look until then. Its writer's
// clock was fast, or the queue has repeated it. So it is put again for its time.
//
// Our own clock may also be slow. So the earliest message, and the message that the note names, on which other replicas
// rely, are put off for some minutes only, and twice as long each time.
const (
	firstPutOff = 10 * time.Minute
	mostPutOffs = 10 // after which the time does not grow: it is a week then
)

// An earlyMessage is a message of this app that is visible before its time.
type earlyMessage struct {
	message
	queued  string // the ID by which the queue knows it
	receipt Receipt
}

// early reports whether a message is visible before its time.
func (s *sweep) early(got *Message) (e earlyMessage, ok bool) {
	m, isAlarm := decodeMessage(got)
	if m.Work != "" {
		m.Put = m.taken(got.Inserted)
	}
	return earlyMessage{m, got.ID, got.Receipt}, isAlarm && m.App == s.app && m.At.Sub(s.now()) > margin
}

// putOff puts messages again for their times. It returns those that are to be deleted, and which are left as they are.
func (s *sweep) putOff(ctx context.Context, all []earlyMessage) (moved []Receipt, left []string) {
	if len(all) == 0 {
		return nil, nil
	}
	first := slices.MinFunc(all, func(a, b earlyMessage) int { return a.At.Compare(b.At) }).queued
	noted, err := s.note(ctx)
	for _, e := range all {
		now := s.now()
		hidden := min(e.At.Sub(now), Longest)
		if e.queued == first || e.ID == noted.ID || err != nil {
			hidden = min(hidden, firstPutOff<<min(max(e.PutOff, 0), mostPutOffs))
			e.PutOff++
		}
		if _, err := s.put(ctx, e.message, now.Add(hidden)); err != nil {
			left = append(left, e.queued)
		} else {
			moved = append(moved, e.receipt)
		}
	}
	return moved, left
}
