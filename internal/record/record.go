// Package record is what replicas and operators write into a store: the record of each job, and the document of the orders.
package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
)

// A Record is what the store knows about one job: which replica ran which tick last, with
// what outcome, and the watermark, up to which every tick has its outcome.
type Record struct {
	App string `json:"app"`
	Job string `json:"job"`

	Created time.Time `json:"created"` // distinguishes an entry from another created after a deletion

	Definition Definition `json:"definition"`

	Token  int64  `json:"token"`         // the fencing token: +1 per claim, never reset
	Beat   Beat   `json:"beat,omitzero"` // how often the holder of the run writes; zero: the lease alone shows that it is alive
	Writer string `json:"writer"`        // a nonce: shows a writer whether a write of unclear outcome is its own

	Watermark time.Time `json:"watermark"`    // each tick up to it has its outcome
	Due       time.Time `json:"due,omitzero"` // the next tick under Definition that is neither settled nor claimed

	Succeeded time.Time `json:"succeeded,omitzero"` // end of the last success, manual or not; may be older than History

	Past Past `json:"past,omitzero"` // what is known of ticks that History may have lost

	Run      Run                    `json:"run"`               // the last one
	Failures int64                  `json:"failures,omitzero"` // outcomes failed or stalled since the last success; not of manual runs
	Orders   Orders                 `json:"orders,omitzero"`   // how far operators' orders are carried out
	Backfill Backfilled             `json:"backfill,omitzero"` // how far the last backfill is; its outcomes are in neither Counts nor History
	Counts   map[event.Status]int64 `json:"counts,omitzero"`
	History  []event.Outcome        `json:"history,omitzero"` // newest first

	unknown map[string]json.RawMessage // fields of a newer writer survive a rewrite
}

// A Definition is the one of the job that is in force.
type Definition struct {
	Spec  string    `json:"spec"`          // hash of what makes the ticks of the job what they are
	Since time.Time `json:"since"`         // start of the youngest replica that wrote under Spec
	Mark  Mark      `json:"mark,omitzero"` // asks whether replicas under Spec are up
}

// A Past is what is known of ticks whose outcomes History may have lost.
type Past struct {
	Succeeded time.Time `json:"succeeded,omitzero"` // the newest tick that has succeeded; a record of a program that does not know the field has it in History, if at all
	Judged    time.Time `json:"judged,omitzero"`    // each tick up to it is judged, and reported if late; zero: no time limit
	Late      Late      `json:"late,omitzero"`      // zero: the job is not late
	Told      time.Time `json:"told,omitzero"`      // when late ticks were last reported by a write for that alone
}

// A Late is what is known of ticks that have not succeeded in time, since the last success.
type Late struct {
	Since time.Time `json:"since"` // when the first of them should have succeeded
	Tick  time.Time `json:"tick"`  // the newest
	Count int64     `json:"count"` // how many they are
}

// A Run is what a record says of the last run that was claimed.
type Run struct {
	Tick     time.Time    `json:"tick,omitzero"`    // zero for a singleton
	Request  string       `json:"request,omitzero"` // who asked for this manual run, at Tick; of a backfill: see event.BackfillOf
	Order    int64        `json:"order,omitzero"`   // of a manual run that was ordered, or of a backfill: the number of the order
	Attempt  int          `json:"attempt,omitzero"`
	Deaths   int          `json:"deaths,omitzero"` // attempts of Tick whose runner died, stalled or lost its lease, as far as written
	Status   event.Status `json:"status"`          // event.Running: if its lease is live; otherwise its runner has died
	Replica  string       `json:"replica,omitzero"`
	Lease    Seconds      `json:"lease,omitzero"`
	Claimed  time.Time    `json:"claimed,omitzero"`
	Armed    bool         `json:"armed,omitzero"`    // claimed before Tick: the run starts at Tick without a further write
	Finished time.Time    `json:"finished,omitzero"` // zero: Do has not returned, as far as known
	Stopping bool         `json:"stopping,omitzero"` // the run is about to be handed over
	Progress Progress     `json:"progress,omitzero"`
	Error    string       `json:"error,omitzero"`    // why the run failed
	Unlocked Unlocked     `json:"unlocked,omitzero"` // who has ended the lease of the run
}

// A Beat says that the holder of a run writes the record at each third of Length, so that it can be
// replaced sooner than its lease expires. See [Record.Beats].
type Beat struct {
	Token  int64   `json:"token"`  // of the run
	Length Seconds `json:"length"` // a holder whose last write is older does not trust its lease any more
}

// A Progress is a heartbeat of a run: the last one when the record was written. The record is
// written for it at most once a minute, for people who ask for the status.
type Progress struct {
	Note string    `json:"note,omitzero"` // of the last heartbeat
	At   time.Time `json:"at"`            // when it was sent, by the store's clock
}

// A Mark asks whether replicas of the definition in force are up.
type Mark struct {
	Spec  string    `json:"spec"`  // definition of the replica that asks
	Since time.Time `json:"since"` // start of that replica
}

// An Unlocked says that an operator ended the lease of a run at once. The run may go on until
// its holder notices, so the next holder waits before it claims.
type Unlocked struct {
	By string    `json:"by"` // the replica or operator that unlocked the job
	At time.Time `json:"at"` // by the store's clock
}

// Orders is what a record keeps because of the orders of operators.
type Orders struct {
	Served int64     `json:"served,omitzero"`  // the order of the last request that has its run or its outcome; older ones have theirs
	Early  []int64   `json:"early,omitempty"`  // newer orders of requests that have theirs too: a manual call has run them before their turn
	Paused SelfPause `json:"paused,omitzero"`  // zero: the job has not paused itself
	Pauses []Span    `json:"pauses,omitempty"` // pauses of the job by itself that are over, while ticks from before them may wait
	// Returned is the last claim, if it was given up before its run began.
	Returned Returned `json:"returned,omitzero"`
	Spared   int64    `json:"spared,omitzero"` // of the failures in a row: those from before the job was last resumed
}

// IsServed reports whether the request of an order has its run or its outcome.
func (o *Orders) IsServed(order int64) bool {
	return order <= o.Served || slices.Contains(o.Early, order)
}

// A Returned is a claim of a tick, or of a run that was ordered, that was given up. An order to
// cancel the run of its token is about the next claim of the same.
type Returned struct {
	Tick  time.Time `json:"tick,omitzero"`
	Order int64     `json:"order,omitzero"`
}

// A Span is the time of a pause that is over: after From, up to To.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// A SelfPause says that a job has paused itself after too many failures in a row. It goes on
// once an operator has resumed it.
type SelfPause struct {
	At    time.Time `json:"at"`    // by the store's clock
	Token int64     `json:"token"` // of the run that was one too many
}

// A Backfilled is how far a backfill is: the last one of the job of which a tick was claimed.
type Backfilled struct {
	Seq     int64                  `json:"seq"`              // of the order
	Through time.Time              `json:"through"`          // its last tick that was claimed; those before it have their outcome
	Attempt int                    `json:"attempt,omitzero"` // if Through waits for another attempt: how many it has had
	Deaths  int                    `json:"deaths,omitzero"`  // the attempts of those whose runner died, stalled or lost its lease
	Counts  map[event.Status]int64 `json:"counts,omitzero"`  // the outcomes of its ticks
	Failed  time.Time              `json:"failed,omitzero"`  // the last tick that came to a bad end

	// Several says that a claim of it has several ticks. Then neither Attempt nor Deaths counts, but Open: the ticks up to
	// Through that were claimed and have no outcome, in their order.
	Several bool       `json:"several,omitzero"`
	Open    []OpenTick `json:"open,omitempty"`
}

// An OpenTick is a tick of a backfill that is under way, or waits for an attempt.
type OpenTick struct {
	Tick    time.Time `json:"tick"`
	Token   int64     `json:"token"`            // of its last claim; negative: its attempt in that is over, and it waits
	Attempt int       `json:"attempt,omitzero"` // how many it has had, with that which is under way
	Deaths  int       `json:"deaths,omitzero"`  // how many had a runner that died, stalled or lost its lease
}

// sound reports whether the open ticks can be counted on.
func (b *Backfilled) sound() bool {
	return !slices.ContainsFunc(b.Open, func(o OpenTick) bool {
		return o.Attempt < 0 || o.Attempt > MaxAttempt || o.Deaths < 0 || o.Deaths > MaxAttempt
	})
}

// Done returns how many ticks have their outcome.
func (b *Backfilled) Done() (n int64) {
	for _, some := range b.Counts {
		n += some
	}
	return n
}

// Idle is the status of a job that has never run.
const Idle event.Status = "idle"

// Seconds is a duration that JSON shows as a number of seconds.
type Seconds time.Duration

// MarshalJSON writes seconds with as many decimals as needed.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', -1, 64), nil
}

// UnmarshalJSON reads a number of seconds.
func (s *Seconds) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || f < 0 || f > 1e6 {
		return fmt.Errorf("a number of seconds is expected, not %.20q", b)
	}
	*s = Seconds(math.Round(f * float64(time.Second)))
	return nil
}

const (
	schema       = 1
	maxHistory   = 20   // of a record of more than small bytes
	small        = 4000 // bytes
	maxErrorLen  = 500  // runes; an escaped one takes up to 12 bytes
	maxNoteLen   = 100  // also in runes
	maxReasonLen = 500  // also in runes
	fewReasonLen = 100  // of the older outcomes, if not all have room
	maxNameLen   = 100  // of who unlocked the job

	MaxToken = math.MaxInt64 / 2 // half of the range, so that counting on from it never overflows

	// MaxAttempt is the largest attempt that can be read.
	MaxAttempt = math.MaxInt32
)

// Decode reads the record of app/job. A record that it refuses must be neither run nor
// overwritten: its writer knows something that this program does not.
func Decode(b []byte, app, job string) (Record, error) {
	var r Record
	if len(b) == 0 {
		return r, errors.New("the entry has no record: something else made it")
	}
	v := versioned{plain: (*plain)(&r)}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if d.Decode(&v) != nil || d.InputOffset() != int64(len(b)) {
		r, v.Schema = Record{}, 0
		if err := json.Unmarshal(b, &r.unknown); err != nil {
			return r, fmt.Errorf("the record is not JSON: %w", err)
		}
		if err := json.Unmarshal(b, &v); err != nil {
			return r, fmt.Errorf("the record cannot be read: %w", err)
		}
		// JSON matches names in any spelling. An unknown field that differs from a known one
		// only in case would be read in its place after a rewrite.
		maps.DeleteFunc(r.unknown, func(name string, _ json.RawMessage) bool {
			return slices.ContainsFunc(names, func(known string) bool { return strings.EqualFold(known, name) })
		})
	}
	return r, cmp.Or(r.check(v.Schema, app, job), checkInstants(reflect.ValueOf(&r).Elem()))
}

// names are those of the members of a record.
var names = func() (all []string) {
	for f := range reflect.TypeFor[Record]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			all = append(all, name)
		}
	}
	return append(all, "schema")
}()

// check returns why the record must not be used, nil if it may.
func (r *Record) check(version int, app, job string) error {
	switch {
	case version > schema:
		return fmt.Errorf("the record has schema %d and this program reads up to %d: update the program", version, schema)
	case version < 1:
		return fmt.Errorf("the record has schema %d: another program wrote it", version)
	case r.App != app || r.Job != job:
		return fmt.Errorf("the record belongs to %.80q, not to %q: two programs share a name", r.App+"/"+r.Job, app+"/"+job)
	case r.Token < 1 || r.Token > MaxToken:
		return fmt.Errorf("the record has token %d: a token is from 1 to %d", r.Token, int64(MaxToken))
	case r.Run.Attempt < 0 || r.Run.Attempt > MaxAttempt || r.Run.Deaths < 0:
		return fmt.Errorf("the record has attempt %d and %d deaths: they count from zero to %d", r.Run.Attempt, r.Run.Deaths, MaxAttempt)
	case !r.Backfill.sound():
		return fmt.Errorf("the backfill of the record has a tick with attempts or deaths beyond 0 to %d", MaxAttempt)
	case r.Watermark.IsZero() || r.Created.IsZero():
		return errors.New("the record has no watermark or no date of creation")
	case !known(r.Run.Status):
		return fmt.Errorf("the record has the unknown status %.40q", r.Run.Status)
	}
	for _, f := range r.History {
		if !known(f.Status) {
			return fmt.Errorf("the history of the record has the unknown status %.40q", f.Status)
		}
	}
	return nil
}

// known reports whether this program knows the status. It cannot act on a status that a
// newer program has added.
func known(s event.Status) bool {
	switch s {
	case Idle, event.Running, event.Succeeded, event.Failed, event.Stalled, event.Abandoned, event.Skipped, event.Missed, event.Cancelled:
		return true
	}
	return false
}

// MayRun reports whether the run in r may still be under way, perhaps in a process that cannot
// reach the store. A stalled run may be, until it is known to have returned.
func (r *Record) MayRun() bool {
	return r.Run.Status == event.Running || r.Run.Status == event.Stalled && r.Run.Finished.IsZero()
}

// ShortestBeat is the shortest lease that a program can ask for over a [store.ConditionalBreaker].
const ShortestBeat = time.Second

// Beats returns the length of the beat of the run in r, zero if its holder sends none. A program that
// does not know beats may have left an old one in its claim: that has the token of another run.
func (r *Record) Beats() time.Duration {
	if !r.MayRun() || r.Beat.Token != r.Token {
		return 0
	}
	return time.Duration(r.Beat.Length)
}

// Clone returns a copy whose changes leave r as it is. Both share the history and the counts,
// which are therefore never changed in place: a step copies a record more often than it settles
// a tick.
func (r *Record) Clone() Record { return *r }

// checkInstants refuses an instant whose year in UTC is beyond what JSON can write. It can be
// read in another zone, but then no answer that contains it can be written: one such record
// would make the status of all jobs fail.
func checkInstants(v reflect.Value) (err error) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		at, _ := reflect.TypeAssert[*time.Time](v.Addr())
		if year := at.UTC().Year(); year < 1 || year > 9999 {
			return fmt.Errorf("the record has the instant %s: want the years 1 to 9999 in UTC: correct the record", at.Format(time.RFC3339))
		}
	case v.Kind() == reflect.Slice:
		for i := 0; i < v.Len() && err == nil; i++ {
			err = checkInstants(v.Index(i))
		}
	case v.Kind() == reflect.Struct:
		for i := 0; i < v.NumField() && err == nil; i++ {
			err = checkInstants(v.Field(i))
		}
	}
	return err
}
