package alarm

import (
	"context"
	"slices"
	"time"
)

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
