package alert

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
)

// overdueSeen is for how long a tick seems overdue before it is: replicas that start need a moment.
const overdueSeen = 15 * time.Second

// waited is a tick that seems overdue.
type waited struct {
	tick time.Time
	seen time.Duration // the first time, in elapsed time
}

// A detector finds what is wrong with jobs. It is used by one goroutine.
type detector struct {
	c       *Config
	floors  map[string]int64  // the version of each record at the first look
	overdue map[string]waited // ticks that seem overdue
	unread  unread
	suspect bool // something seems wrong, and is no incident yet
}

func newDetector(c *Config) detector {
	return detector{c: c, floors: map[string]int64{}, overdue: map[string]waited{}, unread: unread{}}
}

// detect returns what the records say, and whether the next look has to come soon, since
// something seems wrong that is no incident yet.
func (d *detector) detect(ctx context.Context) (seen []condition, suspect bool) {
	d.suspect = false
	all := d.c.Look(ctx)
	now := d.c.Now().Round(0).Add(-d.c.Health().Skew) // the store's, as far as known
	var orders *record.Control                        // read only if it matters
	for i := range all {
		st := &all[i]
		if st.EveryReplica {
			continue
		}
		conditions, failing := d.unread.look(d.c, st)
		d.suspect = d.suspect || failing
		v := version(&st.Record)
		if st.Err == nil && st.Lease != "" { // there is a record, and it is known
			if _, known := d.floors[st.Name]; !known {
				d.floors[st.Name] = v
			}
			if d.isLate(st, now) && orders == nil {
				if c, err := d.c.Control(ctx); err == nil {
					orders = &c
				}
			}
			conditions = append(conditions, ofRecord(st, d.c.Failures, now)...)
			conditions = slices.Concat(conditions, unclaimed(st, now), d.isOverdue(st, orders, now))
		}
		for _, c := range conditions {
			if c.Job = st.Name; !c.timed {
				c.Version = v
			}
			seen = append(seen, c)
		}
	}
	return seen, d.suspect
}

// isLate reports whether a tick has been due for too long. Ticks that come due during a run
// wait until it ends, and the ticks of a job that follows others wait for those jobs.
func (d *detector) isLate(st *desk.Status, now time.Time) bool {
	if st.Next.IsZero() || st.Awaits != "" || st.Singleton || st.Record.MayRun() && st.Lease.Live() {
		return false
	}
	return now.Sub(st.Next) > d.c.Late(st.Name)
}

// isOverdue is about a tick that is late, is not paused, and has been so for a while.
func (d *detector) isOverdue(st *desk.Status, orders *record.Control, now time.Time) []condition {
	late := d.isLate(st, now)
	if late && orders == nil {
		return nil // it is not known whether the job is paused
	}
	if !late || !st.Record.Orders.Paused.At.IsZero() || now.Sub(dueSince(st, orders.Jobs[st.Name], now)) <= d.c.Late(st.Name) {
		delete(d.overdue, st.Name)
		return []condition{{Kind: Overdue}}
	}
	if w, ok := d.overdue[st.Name]; !ok || !w.tick.Equal(st.Next) { // a backlog that is being run is no incident
		d.overdue[st.Name] = waited{st.Next, d.c.Elapsed()}
	}
	if d.c.Elapsed()-d.overdue[st.Name].seen < overdueSeen {
		d.suspect = true
		return nil
	}
	return []condition{{Kind: Overdue, On: true, About: version(&st.Record), facts: facts{Tick: st.Next,
		Text: fmt.Sprintf("is overdue: no replica has claimed the tick %s in %s", st.Next.UTC().Format(time.RFC3339), now.Sub(st.Next).Round(time.Second))}}}
}

// unreadableTime is for how long a replica has to fail before that is an incident: a call may
// fail once.
const unreadableTime = time.Minute

// unread has, of each job whose record cannot be read, since when, in elapsed time.
type unread map[string]time.Duration

// look is about a record that cannot be read, which has no version to order the looks
// by. So they are ordered by when they were made, in the store's time. The incident is over
// when any replica has read the record. It begins again only with a failure that came after
// that, or when no replica is left that can read it: records of a newer program stay unreadable
// for the replicas of the older one. Suspect says that a record cannot be read, for too short a
// time yet.
func (u unread) look(config *Config, st *desk.Status) (seen []condition, suspect bool) {
	c := condition{Kind: Unreadable, timed: true, looked: config.Elapsed(), first: config.Elapsed()}
	if st.Err == nil {
		delete(u, st.Name)
		return []condition{c}, false
	}
	if config.Health().Storage != nil { // that is an incident of its own
		delete(u, st.Name)
		return nil, false
	}
	if first, known := u[st.Name]; known {
		c.first = first
	}
	if u[st.Name] = c.first; c.looked-c.first < unreadableTime {
		return nil, true
	}
	c.On = true
	c.facts = facts{Replica: config.Replica, Error: st.Err.Error(), Text: "does not run: its record cannot be read"}
	return []condition{c}, false
}

// date sets the version of a condition whose record has none. The store's time was now when
// this replica's clock of elapsed time was at begun.
func (c *condition) date(now time.Time, begun time.Duration) {
	if !c.timed {
		return
	}
	c.Version = now.Add(c.looked - begun).UnixMilli()
	if c.On {
		c.About = now.Add(c.first - begun).UnixMilli()
	}
}
