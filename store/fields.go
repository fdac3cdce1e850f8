package store

import (
	"errors"
	"maps"
	"slices"
)

// A replica reads and writes the record of each job several times a tick, and package json takes
// longer for that than all that decides what to write. So the known fields are listed here, once
// for both ways, in the bytes that package json makes of them, except what must be ASCII. A test
// holds the two together, so that no new field is left out here.

// appendJSON appends the record as JSON in ASCII. It returns false if that is not possible: the
// record has an instant that JSON cannot write, or fields of a newer program.
func (r *Record) appendJSON(b []byte) ([]byte, bool) {
	if len(r.unknown) > 0 {
		return b, false
	}
	c := codec{b: append(b, '{'), schema: schema}
	r.fields(&c)
	c.b = append(c.b, '}')
	return c.b, c.err == nil
}

// readJSON reads what appendJSON writes, and the version of its schema. It returns false for
// anything else, which package json has to read.
func (r *Record) readJSON(b []byte) (version int, ok bool) {
	c := codec{b: b, reads: true}
	c.expect('{')
	r.fields(&c)
	c.expect('}')
	return c.schema, c.err == nil && c.at == len(b)
}

func (r *Record) fields(c *codec) {
	number(c, "schema", &c.schema)
	c.text("app", &r.App)
	c.text("job", &r.Job)
	c.instant("created", &r.Created)
	c.object("definition", true, r.Definition.fields)
	number(c, "token", &r.Token)
	c.object("beat", r.Beat != Beat{}, r.Beat.fields)
	c.text("writer", &r.Writer)
	c.instant("watermark", &r.Watermark)
	c.instantUnlessZero("due", &r.Due)
	c.instantUnlessZero("succeeded", &r.Succeeded)
	c.object("past", r.Past != Past{}, r.Past.fields)
	c.object("run", true, r.Run.fields)
	numberUnlessZero(c, "failures", &r.Failures)
	c.object("orders", !r.Orders.zero(), r.Orders.fields)
	c.object("backfill", !r.Backfill.zero(), r.Backfill.fields)
	c.counts(&r.Counts)
	list(c, "history", &r.History, r.History != nil, (*Outcome).fields)
}

func (b *Beat) fields(c *codec) {
	number(c, "token", &b.Token)
	c.seconds("length", &b.Length)
}

func (d *Definition) fields(c *codec) {
	c.text("spec", &d.Spec)
	c.instant("since", &d.Since)
	c.object("mark", d.Mark != Mark{}, d.Mark.fields)
}

func (m *Mark) fields(c *codec) {
	c.text("spec", &m.Spec)
	c.instant("since", &m.Since)
}

func (p *Past) fields(c *codec) {
	c.instantUnlessZero("succeeded", &p.Succeeded)
	c.instantUnlessZero("judged", &p.Judged)
	c.object("late", p.Late != Late{}, p.Late.fields)
	c.instantUnlessZero("told", &p.Told)
}

func (l *Late) fields(c *codec) {
	c.instant("since", &l.Since)
	c.instant("tick", &l.Tick)
	number(c, "count", &l.Count)
}

func (r *Run) fields(c *codec) {
	c.instantUnlessZero("tick", &r.Tick)
	c.textUnlessEmpty("request", &r.Request)
	numberUnlessZero(c, "order", &r.Order)
	numberUnlessZero(c, "attempt", &r.Attempt)
	numberUnlessZero(c, "deaths", &r.Deaths)
	c.text("status", (*string)(&r.Status))
	c.textUnlessEmpty("replica", &r.Replica)
	c.secondsUnlessZero("lease", &r.Lease)
	c.instantUnlessZero("claimed", &r.Claimed)
	c.flag("armed", &r.Armed)
	c.instantUnlessZero("finished", &r.Finished)
	c.flag("stopping", &r.Stopping)
	c.object("progress", r.Progress != Progress{}, r.Progress.fields)
	c.textUnlessEmpty("error", &r.Error)
	c.object("unlocked", r.Unlocked != Unlocked{}, r.Unlocked.fields)
}

func (p *Progress) fields(c *codec) {
	c.textUnlessEmpty("note", &p.Note)
	c.instant("at", &p.At)
}

func (u *Unlocked) fields(c *codec) {
	c.text("by", &u.By)
	c.instant("at", &u.At)
}

func (o *Orders) fields(c *codec) {
	numberUnlessZero(c, "served", &o.Served)
	array(c, "early", &o.Early, len(o.Early) > 0, func(early *int64) { digits(c, early) })
	c.object("paused", o.Paused != SelfPause{}, o.Paused.fields)
	list(c, "pauses", &o.Pauses, len(o.Pauses) > 0, (*Span).fields)
	c.object("returned", o.Returned != Returned{}, o.Returned.fields)
	numberUnlessZero(c, "spared", &o.Spared)
}

// zero reports whether no field is set.
func (o *Orders) zero() bool {
	return o.Served == 0 && o.Early == nil && o.Paused == SelfPause{} && o.Pauses == nil && o.Returned == Returned{} && o.Spared == 0
}

func (p *SelfPause) fields(c *codec) {
	c.instant("at", &p.At)
	number(c, "token", &p.Token)
}

func (s *Span) fields(c *codec) {
	c.instant("from", &s.From)
	c.instant("to", &s.To)
}

func (r *Returned) fields(c *codec) {
	c.instantUnlessZero("tick", &r.Tick)
	numberUnlessZero(c, "order", &r.Order)
}

func (b *Backfilled) fields(c *codec) {
	number(c, "seq", &b.Seq)
	c.instant("through", &b.Through)
	numberUnlessZero(c, "attempt", &b.Attempt)
	numberUnlessZero(c, "deaths", &b.Deaths)
	c.counts(&b.Counts)
	c.instantUnlessZero("failed", &b.Failed)
	c.flag("several", &b.Several)
	list(c, "open", &b.Open, len(b.Open) > 0, (*OpenTick).fields)
}

// zero reports whether no field is set.
func (b *Backfilled) zero() bool {
	return b.Seq == 0 && b.Through.IsZero() && b.Attempt == 0 && b.Deaths == 0 && b.Counts == nil && b.Failed.IsZero() && !b.Several && len(b.Open) == 0
}

func (o *OpenTick) fields(c *codec) {
	c.instant("tick", &o.Tick)
	number(c, "token", &o.Token)
	numberUnlessZero(c, "attempt", &o.Attempt)
	numberUnlessZero(c, "deaths", &o.Deaths)
}

func (o *Outcome) fields(c *codec) {
	c.instantUnlessZero("tick", &o.Tick)
	c.instantUnlessZero("from", &o.From)
	numberUnlessZero(c, "count", &o.Count)
	c.flag("atLeast", &o.AtLeast)
	c.text("status", (*string)(&o.Status))
	c.textUnlessEmpty("reason", &o.Reason)
	c.textUnlessEmpty("request", &o.Request)
	numberUnlessZero(c, "attempt", &o.Attempt)
	numberUnlessZero(c, "token", &o.Token)
	c.textUnlessEmpty("replica", &o.Replica)
	c.instantUnlessZero("start", &o.Start)
	c.instantUnlessZero("end", &o.End)
}

var errUnknownCount = errors.New("the record counts a status that this program does not know")

func (c *codec) counts(of *map[Status]int64) {
	c.object("counts", *of != nil, func(c *codec) {
		if c.reads {
			*of = map[Status]int64{}
			for c.err == nil && c.at < len(c.b) && c.b[c.at] != '}' {
				name, n := c.nextName(), int64(0)
				number(c, name, &n)
				(*of)[Status(name)] = n
			}
			return
		}
		for _, s := range slices.Sorted(maps.Keys(*of)) {
			if !s.known() { // its name may have to be escaped
				c.err = errUnknownCount
			}
			n := (*of)[s]
			number(c, string(s), &n)
		}
	})
}
