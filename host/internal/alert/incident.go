package alert

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Kind is what is wrong.
type Kind string

const (
	Failures  Kind = "failures"   // the job has failed or stalled so many times in a row
	Stalled   Kind = "stalled"    // a run made no progress, and no later one has succeeded
	Abandoned Kind = "abandoned"  // a tick was given up, and no later run has succeeded
	Overdue   Kind = "overdue"    // a tick is late, and no replica claims it
	Late      Kind = "late"       // ticks have not succeeded by Late.Finish, and none has since
	Unclaimed Kind = "unclaimed"  // a client that claims nothing holds the lease
	Paused    Kind = "paused"     // the job has paused itself
	Skewed    Kind = "clock-skew" // the clock of a replica is wrong
	Storage   Kind = "storage"    // a replica cannot reach the store

	Unreadable Kind = "unreadable" // a replica that reaches the store cannot read the job's record
)

// Messages about an incident.
const (
	alerted   = "alert"
	recovered = "recovered"
)

// giveUp is how long a receiver may be down.
const giveUp = 24 * time.Hour

const (
	claimFor  = 30 * time.Second // for so long one replica has a message; longer than its call takes
	mostSends = 20               // messages that one replica sends at the same time
)

// mostIncidents keeps the document small. Further ones wait until some are over.
const mostIncidents = 500

// A condition is what one look says about one kind of incident of one job.
type condition struct {
	Job     string
	Kind    Kind
	On      bool
	About   int64 // orders the incidents of a job and kind; zero: none was ever
	Version int64 // of the record that was read: an older one proves nothing
	facts

	timed         bool // there is no version: what follows counts, in elapsed time
	looked, first time.Duration
}

// facts are for the message.
type facts struct {
	Text     string    `json:"text"`
	Error    string    `json:"error,omitzero"`
	Tick     time.Time `json:"tick,omitzero"`
	Token    int64     `json:"token,omitzero"`
	Failures int64     `json:"failures,omitzero"`
	Replica  string    `json:"replica,omitzero"` // that ran, or that has the trouble
}

// An incident is from the moment that something is wrong until both messages are sent.
type incident struct {
	ID      string    `json:"id"`
	Job     string    `json:"job,omitzero"`
	Kind    Kind      `json:"kind"`
	Version int64     `json:"version"`
	Since   time.Time `json:"since"`
	Over    time.Time `json:"over,omitzero"`    // zero: it goes on
	Alerted time.Time `json:"alerted,omitzero"` // zero: its first message is not known to be sent
	Dropped bool      `json:"dropped,omitzero"` // its first message was given up, so its end is no news
	Claim   claim     `json:"claim,omitzero"`
	Tries   int       `json:"tries,omitzero"` // of the next message
	Next    time.Time `json:"next,omitzero"`  // when it is tried again
	facts
}

// A claim says which process sends the next message, and until when no other one does.
type claim struct {
	By    string    `json:"by"`
	Until time.Time `json:"until"`
}

// A content is that of the document: the open incidents of an app.
type content struct {
	Schema    int              `json:"schema"`
	App       string           `json:"app"`
	Incidents []*incident      `json:"incidents,omitzero"`
	Closed    map[string]int64 `json:"closed,omitzero"` // of each job and kind: the version of the record that ended the last one
	Asked     map[string]int64 `json:"asked,omitzero"`  // of unreadable records: since when a replica asks whether another can read it
	Forgot    int              `json:"forgot,omitzero"` // how often entries of Closed were removed for want of room
}

func (c *condition) key() string { return keyOf(c.Job, c.Kind) }

func keyOf(job string, kind Kind) string { return job + "/" + string(kind) }

// observe opens and ends incidents. floors are the versions of the records at this replica's
// first look: what was over before then is no news.
func (d *content) observe(seen []condition, floors map[string]int64, now time.Time) (changed bool) {
	for n := range seen {
		c := &seen[n]
		if c.Kind == Unreadable {
			changed = d.ask(c) || changed
		}
		at := slices.IndexFunc(d.Incidents, func(i *incident) bool { return i.Job == c.Job && i.Kind == c.Kind })
		news := c.About > d.Closed[c.key()] && (c.On || c.About > floors[c.Job])
		switch {
		case at < 0 && news && len(d.Incidents) < mostIncidents:
			d.open(c, now)
		case at >= 0 && d.Incidents[at].Over.IsZero() && !c.On && c.Version >= d.Incidents[at].Version:
			d.end(d.Incidents[at], c.Version, now)
		case at >= 0 && !d.Incidents[at].Over.IsZero() && c.On && news:
			// It is not over after all, as far as the receiver knows: one incident goes on.
			d.Incidents[at].Over, d.Incidents[at].Version = time.Time{}, c.Version
		default:
			continue
		}
		changed = true
	}
	return changed
}

func (d *content) open(c *condition, now time.Time) {
	d.Incidents = append(d.Incidents, &incident{ID: fmt.Sprintf("%s/%s/%d", d.App, c.key(), c.About), Job: c.Job, Kind: c.Kind,
		Version: c.Version, Since: now, facts: c.facts})
}

func (d *content) end(i *incident, version int64, now time.Time) {
	i.Over = now
	d.close(keyOf(i.Job, i.Kind), version)
	if i.Dropped {
		d.remove(i)
	}
}

// take claims the messages that are due and returns them, and the ids of those that the
// receiver has not taken for too long.
func (d *content) take(me string, now time.Time) (due []Message, dropped []string) {
	for _, i := range slices.Clone(d.Incidents) {
		switch {
		case !i.waits():
			continue
		case now.Sub(i.begun()) > giveUp:
			dropped = append(dropped, i.message())
			d.drop(i)
			continue
		case now.Before(i.Next), i.Claim.By != me && now.Before(i.Claim.Until), len(due) == mostSends:
			continue
		}
		i.Claim = claim{me, now.Add(claimFor)}
		due = append(due, messageOf(d.App, i))
	}
	return due, dropped
}

// event is the message that is the next.
func (i *incident) event() string {
	if i.Alerted.IsZero() {
		return alerted
	}
	return recovered
}

// message is the id of the next message.
func (i *incident) message() string { return i.ID + "/" + i.event() }

// waits reports whether a message has to be sent.
func (i *incident) waits() bool { return !i.Dropped && (i.Alerted.IsZero() || !i.Over.IsZero()) }

// begun is when the next message came up.
func (i *incident) begun() time.Time {
	if i.Alerted.IsZero() {
		return i.Since
	}
	return i.Over
}

// sent notes that the next message was sent.
func (d *content) sent(i *incident, now time.Time) {
	i.Claim, i.Tries, i.Next, i.Dropped = claim{}, 0, time.Time{}, false
	if i.Alerted.IsZero() {
		i.Alerted = now
		return
	}
	d.remove(i)
}

// drop gives up the next message, and those after it. An incident that goes on stays, so
// that no replica opens it again.
func (d *content) drop(i *incident) {
	if i.Dropped = true; !i.Over.IsZero() {
		d.remove(i)
	}
}

func (d *content) remove(i *incident) {
	d.Incidents = slices.DeleteFunc(d.Incidents, func(o *incident) bool { return o == i })
}

// failed gives the claim back: any replica may try again after a pause that doubles.
func (i *incident) failed(now time.Time) {
	i.Tries++
	i.Claim, i.Next = claim{}, now.Add(min(5*time.Second<<min(i.Tries-1, 10), 5*time.Minute))
}

var errForeign = errors.New("the document of alerts is not of this program: correct or delete it")
