package alarm

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/document"
)

// schema is the version of notes and of messages.
const schema = 1

// NoteName returns the name of the document that says which alarm of an app is pending.
func NoteName(app string) string { return app + "/.alarm" }

// A Note says which alarm is pending, since a queue does not show messages that are invisible.
type Note struct {
	ID      string    `json:"id"`      // of the message
	At      time.Time `json:"at"`      // when it becomes visible, or up to a second before
	Tick    time.Time `json:"tick"`    // what it is for
	Receipt Receipt   `json:"receipt"` // to delete it, as long as it was not received

	Queue string `json:"queue,omitzero"` // that it is in
}

// A stored is a note as the document has it.
type stored struct {
	Schema int    `json:"schema"`
	App    string `json:"app"`
	Note
}

// suffices reports whether the alarm is still to come, and comes in time. An alarm that has come may be gone: where the
// platform itself receives messages, it deletes them too.
func (n Note) suffices(now, at time.Time) bool {
	return n.ID != "" && n.At.After(now.Add(margin)) && !n.At.After(at)
}

// A version is the note as it was read. The zero version: there was none.
type version struct {
	Note
	etag string
}

// document is the note as the store has it.
func (c *Clock) document() document.Document {
	return document.Document{Store: c.Notes, Name: NoteName(c.App), Limit: callTimeout}
}

// read returns the note, the zero version if there is none.
func (c *Clock) read(ctx context.Context) (version, error) {
	d, err := c.document().Read(ctx, "")
	if err != nil {
		return version{}, fmt.Errorf("%s: %w", NoteName(c.App), err)
	}
	if d.ETag == "" {
		return version{}, nil
	}
	n, err := decodeNote(d.Body, c.App)
	return version{n, d.ETag}, err
}

// write replaces the note that has the ETag; if that is empty, there has to be none.
func (c *Clock) write(ctx context.Context, n Note, etag string) error {
	b, err := json.Marshal(stored{schema, c.App, n})
	if err != nil {
		return err
	}
	if _, err := c.document().Write(ctx, etag, b); err != nil {
		return fmt.Errorf("%s: %w", NoteName(c.App), err)
	}
	return nil
}

// decodeNote reads a note. A note that it refuses is not overwritten: its writer knows more than this program.
func decodeNote(b []byte, app string) (Note, error) {
	var d stored
	err := json.Unmarshal(b, &d)
	name := NoteName(app)
	switch {
	case err != nil:
		return Note{}, fmt.Errorf("%s is no note of an alarm (%w): delete it, and the next pass writes a new one", name, err)
	case d.Schema > schema:
		return Note{}, fmt.Errorf("%s has schema %d and this program reads up to %d: "+
			"update the program, or delete the document if no newer program is in use", name, d.Schema, schema)
	case d.Schema < 1 || d.ID == "" || !plausible(d.At) || !plausible(d.Tick):
		return Note{}, fmt.Errorf("%s is no note of an alarm: delete it, and the next pass writes a new one", name)
	case d.App != app:
		return Note{}, fmt.Errorf("%s belongs to the app %.80q: delete it, and the next pass writes a new one", name, d.App)
	}
	return d.Note, nil
}

// plausible reports whether a time can be written and computed with.
func plausible(at time.Time) bool { return at.Year() >= 1970 && at.Year() <= 9999 }
