package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A store may not take a lease as short as the program asks for. Then the shortest lease of the
// store is the fence, and the holder of a run writes the record at each third of the shorter
// length: it beats. Each beat changes the ETag. A replica that has seen the same ETag for the
// whole of that length knows that the holder trusts its lease no more: its last beat was sent
// before the first answer that showed the ETag. So it breaks the lease, if the ETag is still the
// same, and goes on as if the lease had expired.
//
// What counts is the length in the record, not this replica's, which may differ.

// beatDrift is by how much longer than the length of a beat the ETag has to be seen: the rates of
// two clocks may differ by one part in so many. It is lease.Drift.
const beatDrift = 100

// silentAfter returns for how long a replica has to see one ETag until the trust in a beat of a length is over.
func silentAfter(beat time.Duration) time.Duration { return beat + beat/(beatDrift-1) }

// untilSilent returns how long it takes until the holder of the run in the view trusts its lease no
// more, if it sends no further beat. It returns false if the run does not beat.
func (o *Observation) untilSilent(v View) (left time.Duration, beats bool) {
	length := v.Record.Beats()
	if length == 0 {
		return 0, false
	}
	length = silentAfter(length)
	if o.etag == "" || o.etag != v.ETag { // what was noticed is about another write
		return length, true
	}
	return max(0, length-o.At.Sub(o.UnchangedSince)), true
}

// UntilSilent is untilSilent for a call that waits for no holder, zero if the run does not beat.
func (o *Observation) UntilSilent(v View) time.Duration {
	left, _ := o.untilSilent(v)
	return left
}

// Silent reports whether the lease in the view can be broken since its holder sends no beat.
func (o *Observation) Silent(v View) bool {
	return v.Record.MayRun() && v.State.Live() && o.silent(v)
}

// A Sighting is what an [Observation] knows of beats, and of a lease without a claim: since when which ETag is seen. It
// outlives the observation of one call.
type Sighting struct {
	etag  string
	since time.Time
	last  lastWrite
	idle  Occupation
}

// Sighting returns what is known.
func (o *Observation) Sighting() Sighting {
	return Sighting{o.etag, o.UnchangedSince, o.lastWrite, o.Occupation}
}

// Recall goes on from a sighting.
func (o *Observation) Recall(s Sighting) {
	o.etag, o.UnchangedSince, o.lastWrite, o.Occupation = s.etag, s.since, s.last, s.idle
}

// A lastWrite is after which instant the write was applied that gave the entry its ETag. It outlives
// LookedAway: an ETag belongs to one write, whatever came between two reads.
type lastWrite struct {
	etag  string
	after time.Time // zero: not known
	read  time.Time // when the read was sent that is seen last
	sent  time.Time // when the last read was sent
}

// Sends notes that a read is about to be sent.
func (o *Observation) Sends(at time.Time) { o.lastWrite.sent = at }

// see adds one read. If it has shown another ETag than the read before, the write came after that one was sent.
func (w *lastWrite) see(etag string) {
	if w.etag != etag {
		w.etag, w.after = etag, w.read
	}
	w.read = w.sent
}

// endedByOperator reports whether it is known that an operator has ended the lease of the run in r, or
// lets it end. If the run beats, a replica may have broken the lease, and would have waited for its
// beat after the last write.
func (o *Observation) endedByOperator(s store.LeaseState, r *store.Record) bool {
	if s == store.Breaking { // replicas break at once
		return r.MayRun()
	}
	after := o.lastWrite.after
	return s == store.Broken && !after.IsZero() && o.At.Sub(after) < r.Beats()
}

// Unlocked reports whether an operator is known to have ended the lease of the run in r.
func (o *Observation) Unlocked(r *store.Record) bool { return o.tokens.ended == r.Token && r.MayRun() }

// silent reports whether the holder of the run in the view, under a live lease, has sent no beat
// for so long that its lease can be broken.
func (o *Observation) silent(v View) bool {
	left, beats := o.untilSilent(v)
	return v.Break.Able && beats && left == 0
}

// byBeat has a replica that waits for the end of the run read at each third of the beat. Once it
// has seen the last beat for long enough it does not read again before it breaks the lease: the
// store refuses that if there was another beat.
func (o *Observation) byBeat(a Action, v View) Action {
	left, beats := o.untilSilent(v)
	if !beats || !v.Break.Able {
		return a
	}
	if third := v.Record.Beats() / 3; third < left {
		a.After, a.Jitter = min(a.After, third), min(a.Jitter, third/10)
		return a
	}
	// If it is silent and there is nothing to claim, the lease is left to expire.
	if left > 0 && left < a.After {
		a.After, a.Jitter, a.Read = left, 0, false
	}
	return a
}

// Retoken gives a claim another token.
func Retoken(r *store.Record, token int64) {
	if r.Beat.Token == r.Token {
		r.Beat.Token = token
	}
	r.Backfill.Open = slices.Clone(r.Backfill.Open)
	for i := range r.Backfill.Open {
		if o := &r.Backfill.Open[i]; o.Token == r.Token {
			o.Token = token
		}
	}
	r.Token = token
}

// beatOutOfBounds returns what is wrong with the beat of the run in r: a replica that acted upon a
// very short one would replace a holder that is alive.
func beatOutOfBounds(r *store.Record) error {
	beat, lease := r.Beats(), time.Duration(r.Run.Lease)
	if !r.MayRun() || r.Beat.Token != r.Token || beat >= store.ShortestBeat && beat <= lease && beat%time.Second == 0 {
		return nil
	}
	return fmt.Errorf("the record has a beat of %s under a lease of %s, and it is whole seconds, at least %s and no more than the lease: another program wrote it: correct it in the record", beat, lease, store.ShortestBeat)
}
