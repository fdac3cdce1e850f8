package alarm

import (
	"context"
	"fmt"
	"time"
)

// A message of Wake is for the version of the program that was deployed before it was put. A process of the version before may
// be up, which knows nothing of new jobs and schedules. It leaves the message to a process of the new version.
//
// The program that puts the message may have other settings than the program that is to answer it. Then their work differs in
// the same version. So a process that has started since answers the message whatever it says; and so does any process once
// the message is an hour old. Its age is counted from when the queue took it, by the clock of the service: who deploys may
// have a clock that is wrong.
const (
	rollout  = 2 * time.Minute // for so long after the message a process of the version before may still start
	mostLeft = time.Hour
	again    = time.Minute // after which a message is visible that was given back
)

// Wake puts a message that is visible at once, after a deployment. A process of another version, which was up before, leaves
// it.
func (c *Clock) Wake(ctx context.Context) error { return c.ring(ctx, c.Work) }

// GiveBack puts a message again that the platform has handed over, and is about to delete, if it is for another version of
// the program. The queue took it at an instant; zero: the platform does not say when.
func (c *Clock) GiveBack(ctx context.Context, text string, inserted time.Time) error {
	m, isAlarm := decodeMessage(&Message{Body: []byte(text), Inserted: inserted})
	if !isAlarm || m.App != c.App || !c.isForAnother(m, inserted) {
		return nil
	}
	m.Put = m.taken(inserted)
	if _, err := c.mailbox().put(ctx, m, c.Now().Add(again)); err != nil {
		return fmt.Errorf("the message of a deployment could not be left to the new version: %w", err)
	}
	return nil
}

// isForAnother reports whether a message is to be answered by a process of another version of the program.
func (c *Clock) isForAnother(m message, inserted time.Time) bool {
	if m.Work == "" || c.Work == "" || m.Work == c.Work {
		return false
	}
	now, put := c.Now(), m.taken(inserted)
	started := now.Add(-time.Since(c.Started))
	return now.Before(put.Add(mostLeft)) && started.Before(put.Add(rollout))
}
