package local

import (
	"time"

	"github.com/soloist-go/soloist/internal/elapsed"
)

// instant is one moment by the clocks of a Dir. The wall clock tells the Date;
// a step of it must not end a lease early, so the end of a lease is kept by the
// time since the machine started, which includes suspension, along with an id
// of that start.
//
// Files keep the end by the wall clock as well. Processes that cannot tell the
// other one, of another system or of a version before it, go by that, and drop
// the other when they write; so the fields of a file never disagree, and what
// one process takes or breaks is taken or broken for all. Only while such a
// process takes part is a step of the wall clock as bad as it was.
type instant struct {
	wall  time.Time
	boot  time.Duration
	start string // the id; empty: not told
}

func (d Dir) instant() instant {
	if d.clock != nil {
		return d.clock()
	}
	now := instant{wall: clock(d.Now).Round(0)} // a file keeps no monotonic reading
	if d.Now == nil {
		now.boot, now.start = elapsed.Boot()
	}
	return now
}

// tell sets Until of a lease from a file to its end by the wall clock of now,
// however that was set meanwhile. A lease of another start of the machine ended
// with it, as did its holder. One that began after this machine started was
// taken on another machine, against advice: the wall clock is all they share.
func (l *lease) tell(now instant) {
	switch {
	case l.Boot == "" || now.start == "":
	case l.Boot == now.start:
		l.Until = now.wall.Add(l.End - now.boot)
	case l.Until.Add(-l.Length).Before(now.wall.Add(-now.boot)) && now.wall.Before(l.Until):
		l.Until = now.wall
	}
}

// note is the opposite of tell, for the file.
func (l *lease) note(now instant) {
	l.Boot, l.End = "", 0
	if now.start != "" && l.ID != "" {
		l.Boot, l.End = now.start, now.boot+l.Until.Sub(now.wall)
	}
}
