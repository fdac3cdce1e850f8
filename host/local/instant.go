package local

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// instant is one moment by the clocks of a Dir. The wall clock gives the Date;
// a step of it must not end a lease early, so the end of a lease is kept by the
// time since the machine started, which includes suspension, along with an id
// of that start.
//
// Files keep the end by the wall clock as well. Processes that do not know
// the other one, of another system or of a version before it, go by that, and drop
// the other when they change the lease; so the fields of a file never disagree,
// and what one process takes or breaks is taken or broken for all. Only while
// such a process takes part is a step of the wall clock as bad as it was.
type instant struct {
	wall  time.Time
	boot  time.Duration
	start string // the id; empty: not known
}

// tell sets Until of a lease from a file to its end by the wall clock of now,
// however that was set meanwhile. It reports whether it has noted a sighting,
// which the file has to keep.
//
// A lease of another start of the machine may be one of another machine that
// shares the directory; nothing distinguishes the two cases. Clocks of two machines
// are never compared: the lease lasts its length from when this machine saw it
// first. After a restart that is how long a lease of the dead keeps others away.
// The wall clock judges the end of a broken lease: the replica that takes it does
// not rely on that end.
func (l *lease) tell(now instant) (sighted bool) {
	switch {
	case l.Boot == "" || now.start == "":
		return false
	case l.Boot == now.start:
		l.Until = now.wall.Add(l.End - now.boot)
		return false
	case l.Broken:
		return false
	}
	end, known := l.Seen.by(now.start)
	if !known {
		end = now.boot + l.Length
		l.Seen = l.Seen.add(now.start, end)
	}
	l.Until = now.wall.Add(end - now.boot)
	return !known
}

// note is the opposite of tell, for the file: this machine's clock judges what
// this process has made of the lease.
func (l *lease) note(now instant) {
	l.Boot, l.End, l.Seen = "", 0, ""
	if now.start != "" && l.ID != "" {
		l.Boot, l.End = now.start, now.boot+l.Until.Sub(now.wall)
	}
}

// maxSightings keeps a machine that restarts again and again from filling the
// file. More machines than that push out each other's sightings, and none of them
// ever sees the end of a dead machine's lease.
const maxSightings = 64

func (s sightings) by(start string) (end time.Duration, known bool) {
	for one := range strings.SplitSeq(string(s), ";") {
		if text, ok := strings.CutPrefix(one, start+"="); ok {
			ns, err := strconv.ParseInt(text, 10, 64)
			return time.Duration(ns), err == nil
		}
	}
	return 0, false
}

func (s sightings) add(start string, end time.Duration) sightings {
	all := strings.FieldsFunc(string(s), func(c rune) bool { return c == ';' })
	all = append(all, fmt.Sprintf("%s=%d", start, end))
	return sightings(strings.Join(all[max(0, len(all)-maxSightings):], ";"))
}
