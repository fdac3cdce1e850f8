package sim

import (
	"encoding/json"
	"math"
	"net/http"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// An operator may also make grave mistakes: overwrite the entry of a job, or delete the
// container of all entries.

// Corruptions are what becomes of an entry: half a record, no record, another program's
// record, an older version of the record, or a record with one or several of its times
// in the future, a lease that no store accepts, or the largest possible token.
var Corruptions = []string{"garbage", none, "other", "ahead", tickAhead, claimAhead, sinceAhead, markAhead, lastToken, endless, trace.Older}

const (
	none    = "none"
	endless = "endless lease"

	tickAhead  = "running tick ahead"
	claimAhead = "running claim ahead"
	sinceAhead = "since 9999"
	markAhead  = "mark 9999"
	lastToken  = "last token"
)

// corrupt overwrites the entry of a job, and mends it after a while: it restores the old
// content, or deletes the entry. It skips an entry that is still corrupted, since the
// old content is not known then.
func (c *Cluster) corrupt(d draw.PlannedFault) {
	if _, on := c.corrupting.LoadOrStore(d.Job, true); on {
		return
	}
	defer c.corrupting.Delete(d.Job)
	r := draw.New(c.Seed, 0, "spoil", d.Job, trace.TimeOfDay(d.At))
	kind := draw.Pick(r, Corruptions...)
	before, _ := c.entry(d.Job)
	if kind == trace.Older && !c.idle(r.Between(time.Minute, 6*time.Minute)) {
		return
	}
	var text string
	kept, e := c.overwrite(d.Job, func(now string) string {
		text = corrupted(kind, now, before)
		return text
	})
	if e == nil {
		return
	}
	s := c.log.AddWith(e, trace.Event{What: trace.Corrupted, Job: d.Job, Note: kind, Record: e.Record})
	if !c.idle(r.Between(10*time.Second, 5*time.Minute)) {
		time.Sleep(r.Between(0, time.Second)) // all are at it now, one after the other
	}
	c.log.Edit(func() { s.End = time.Now() })
	if kind == trace.Older || r.Chance(0.5) {
		c.operate(draw.PlannedFault{What: "delete", Job: d.Job})
	} else {
		c.overwrite(d.Job, func(now string) string {
			if now == text || now == "" && text == none {
				return kept
			}
			return "" // it was deleted meanwhile
		})
	}
}

// corrupted is what an entry gets in the place of now, "" to leave it. There was
// another version of it before.
func corrupted(kind, now, before string) string {
	var r record.Record
	if json.Unmarshal([]byte(now), &r) != nil {
		return ""
	}
	ahead, farAhead := time.Now().Add(time.Hour).UTC().Truncate(time.Minute), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	switch kind {
	case "garbage":
		return now[:len(now)/2]
	case none:
		return none
	case "other":
		r.App = "other"
	case "ahead":
		r.Watermark = r.Watermark.Add(48 * time.Hour)
	case tickAhead:
		r.Run.Status, r.Run.Tick, r.Run.Request, r.Run.Attempt, r.Run.Finished = event.Running, ahead, "", 1, time.Time{}
	case claimAhead:
		r.Run.Status, r.Run.Claimed, r.Run.Finished = event.Running, ahead, time.Time{}
	case sinceAhead:
		r.Definition.Since = farAhead
	case markAhead:
		r.Definition.Mark = record.Mark{Spec: "younger", Since: farAhead}
	case lastToken:
		r.Token = math.MaxInt64 / 2
	case endless:
		r.Run.Lease = record.Seconds(24 * time.Hour)
	case trace.Older:
		if now == before {
			return ""
		}
		return before
	}
	b, err := json.Marshal(&r)
	if err != nil {
		return ""
	}
	return string(b)
}

// entry is the record of a job and its ETag, as they are.
func (c *Cluster) entry(job string) (record, etag string) {
	a := c.net.Service.Answer(blobtest.NewRequest("head", world.Container, "sim/"+job, nil))
	if a.Status != http.StatusOK {
		return "", ""
	}
	return a.Header.Get("X-Ms-Meta-Record"), a.Header.Get("Etag")
}

// overwrite ends the lease of a job's entry and changes its record. It returns
// the one before, and the request, nil if nothing came of it.
func (c *Cluster) overwrite(job string, change func(now string) string) (before string, done *trace.Event) {
	for range 5 { // others may be first
		now, etag := c.entry(job)
		text := change(now)
		if etag == "" || text == "" {
			return "", nil
		}
		c.breakNow(job)
		headers := []string{world.IfMatch, etag, world.MetaKey, text}
		if text == none {
			headers = headers[:2]
		}
		if e := c.request("metadata", job, headers...); e.OK() {
			return now, e
		}
	}
	return "", nil
}
