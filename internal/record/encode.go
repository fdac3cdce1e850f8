package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf16"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// Encode returns the record as JSON of at most store.MaxRecord bytes, in ASCII: Azure keeps it in a
// header, and answers 403 to a header with other characters. If the record is too long, it
// is shortened.
func (r *Record) Encode() ([]byte, error) { return r.EncodeWithin(store.MaxRecord) }

// EncodeWithin is Encode with another limit, in bytes.
func (r *Record) EncodeWithin(limit int) ([]byte, error) {
	r.Run.Error = cut(r.Run.Error, maxErrorLen)
	r.Run.Progress.Note = cut(r.Run.Progress.Note, maxNoteLen)
	r.Run.Unlocked.By = cut(r.Run.Unlocked.By, maxNameLen)
	r.cutReasons()
	for {
		b, err := r.marshal()
		switch {
		case err != nil:
			return nil, err
		case len(r.History) > maxHistory && len(b) > small:
			r.forget(max(maxHistory, len(r.History)-1-(len(b)-small)/usualOutcome))
		case len(b) <= limit:
			return b, nil
		case !r.shorten():
			return nil, fmt.Errorf("the record takes %d bytes and %d are allowed", len(b), limit)
		}
	}
}

const (
	// keptTicks is how many of the newest outcomes of ticks stay: followers that were busy read them.
	keptTicks = 5

	// kept is how many outcomes are needed more than long texts: the ten that one write may add besides.
	kept = keptTicks + 10
)

// shorten drops what is needed least: first most of the long reasons, the oldest first; then the oldest of more outcomes than
// kept; then half of the longest text and, once no text is left, the oldest of more outcomes than one. It returns false if there
// is nothing more to drop.
func (r *Record) shorten() bool {
	if r.cutOldest() {
		return true
	}
	text := r.longest()
	switch {
	case len(r.History) > kept, *text == "" && len(r.History) > 1:
		r.forget(len(r.History) - 1)
	case *text == "":
		return false
	default:
		*text = half(*text)
	}
	return true
}

// forget leaves so many outcomes: the newest, among them the newest of ticks. Runs that operators have ordered are
// settled by the dozen, and the jobs that follow this one have yet to read what became of its ticks.
func (r *Record) forget(most int) {
	ticks := 0 // that stay
	for _, f := range r.History {
		if f.Request == "" && ticks < min(keptTicks, most/2) {
			ticks++
		}
	}
	left, others := make([]event.Outcome, 0, most), most-ticks
	for _, f := range r.History {
		switch {
		case f.Request == "" && ticks > 0:
			ticks--
		case others > 0:
			others--
		default:
			continue
		}
		left = append(left, f)
	}
	r.History = left
}

// longest returns the longest text that may be cut. It clones the history, in which that may be: the record
// that this one was cloned from shares the slice.
func (r *Record) longest() *string {
	r.History = slices.Clone(r.History)
	longest := &r.Run.Error
	if len(r.Run.Progress.Note) > len(*longest) {
		longest = &r.Run.Progress.Note
	}
	for i := range r.History {
		if reason := &r.History[i].Reason; len(*reason) > len(*longest) {
			longest = reason
		}
	}
	return longest
}

// cutReasons shortens the reasons in the history. It clones the history before it changes it:
// the record that this one was cloned from shares the slice.
func (r *Record) cutReasons() {
	cloned := false
	for i := range r.History {
		short := cut(r.History[i].Reason, maxReasonLen)
		if short == r.History[i].Reason {
			continue
		}
		if !cloned {
			r.History, cloned = slices.Clone(r.History), true
		}
		r.History[i].Reason = short
	}
}

// cutOldest shortens the oldest of the reasons that have more than fewReasonLen characters. It returns false if there is none.
func (r *Record) cutOldest() bool {
	for i, f := range slices.Backward(r.History) {
		if short := cut(f.Reason, fewReasonLen); short != f.Reason {
			r.History = slices.Clone(r.History)
			r.History[i].Reason = short
			return true
		}
	}
	return false
}

// plain is a record without its methods.
type plain Record

// A versioned is a record as it is written.
type versioned struct {
	Schema int `json:"schema"`
	*plain
}

// MarshalJSON writes the fields of the record and the version of their schema.
func (r Record) MarshalJSON() ([]byte, error) { return json.Marshal(versioned{schema, (*plain)(&r)}) }

// usualOutcome is how many bytes each outcome in the history of most records takes at most.
const usualOutcome = 220

// marshal returns the JSON of the record, with the fields of newer writers. A field of the
// record counts before an unknown one.
func (r *Record) marshal() ([]byte, error) {
	b, err := r.MarshalJSON()
	if err == nil && len(r.unknown) > 0 {
		all := maps.Clone(r.unknown)
		if err := json.Unmarshal(b, &all); err != nil {
			return nil, err
		}
		b, err = json.Marshal(all)
	}
	return ascii(b), err
}

// ascii escapes all but printable ASCII. It also escapes a second space in a row, which a
// reader of the header may fold into the first.
func ascii(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, char := range string(b) {
		if char < 0x7f && (char != ' ' || out[len(out)-1] != ' ') {
			out = append(out, byte(char))
			continue
		}
		for _, unit := range utf16.AppendRune(nil, char) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}

// half returns the first half of s.
func half(s string) string { return cut(s, len([]rune(s))/2) }

// cut returns at most the first n characters of s.
func cut(s string, n int) string {
	if len(s) <= n { // nearly always
		return s
	}
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}
