package functions

import (
	"fmt"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/internal/schedule"
	"github.com/soloist-go/soloist/internal/ticks"
)

// everyMinute is the timer of the function that serves all jobs.
const everyMinute = "0 * * * * *"

// ncrontab returns the text by which a timer trigger fires at the ticks of the
// job, if there is one. A timer counts in UTC: another zone would be a setting
// of the whole app, which Flex Consumption does not have.
func ncrontab(j soloist.Job, now time.Time) (text string, ok bool) {
	want, err := wakeUps(j)
	if err != nil {
		return "", false
	}
	if text, ok = sixFields(want.Schedule.String()); !ok {
		return "", false
	}
	got, err := schedule.Parse("ncrontab "+text, "", j.Name)
	return text, err == nil && sameTicks(want, got, now, compareMost)
}

// OwnTimer reports whether a timer of its own can fire at the ticks of a job.
func OwnTimer(j soloist.Job, now time.Time) bool {
	_, ok := ncrontab(j, now)
	return ok
}

// wakeUps returns the ticks that a timer of the job fires at. Ticks that From, Until, Except and Only leave out are
// among them: a timer cannot leave them out, and a wake-up at one finds nothing to do. A moved tick needs its own.
func wakeUps(j soloist.Job) (*ticks.Ticks, error) {
	if j.Days.Shift == "" {
		j.Days = soloist.Days{}
	}
	return app.TicksOf(j)
}

// sixFields writes canonical text as NCRONTAB would have it. What that makes of
// its day fields is for sameTicks to see.
func sixFields(canon string) (text string, ok bool) {
	if every, is := strings.CutPrefix(canon, "@every "); is {
		return everyFields(every)
	}
	if strings.HasPrefix(canon, "CRON_TZ=") {
		_, canon, _ = strings.Cut(canon, " ")
	}
	fields := strings.Fields(strings.TrimPrefix(canon, "ncrontab "))
	if len(fields) == 5 { // Windows Consumption takes six only
		fields = append([]string{"0"}, fields...)
	}
	if len(fields) != 6 {
		return "", false
	}
	last := [...]string{"59", "59", "23", "31", "12", "6"}
	for i, f := range fields {
		items := strings.Split(f, ",")
		for k, item := range items {
			items[k] = plainItem(item, last[i])
		}
		fields[i] = strings.Join(items, ",")
	}
	return strings.Join(fields, " "), true
}

// plainItem writes an item so that old versions of NCrontab agree on it.
func plainItem(item, last string) string {
	from, step, stepped := strings.Cut(item, "/")
	switch {
	case item == "?", item == "*/1":
		return "*"
	case stepped && from != "*" && !strings.Contains(from, "-"):
		return from + "-" + last + "/" + step
	}
	return item
}

// everyFields is for periods that begin again with each minute, hour or day.
func everyFields(text string) (string, bool) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return "", false
	}
	for _, unit := range []struct {
		size, whole time.Duration
		format      string
	}{
		{time.Second, time.Minute, "%s * * * * *"},
		{time.Minute, time.Hour, "0 %s * * * *"},
		{time.Hour, 24 * time.Hour, "0 0 %s * * *"},
		{24 * time.Hour, 24 * time.Hour, "0 0 0 %s * *"},
	} {
		if d%unit.size != 0 || unit.whole%d != 0 || d == unit.whole && d != unit.size {
			continue
		}
		step := fmt.Sprintf("*/%d", d/unit.size)
		if d == unit.size {
			step = "*"
		}
		return fmt.Sprintf(unit.format, step), true
	}
	return "", false
}

// How far two schedules are compared: a year, longer where ticks are rare, and
// not each single one where they come all the time.
const (
	compareFor    = 366 * 24 * time.Hour
	compareLeast  = 100
	compareMost   = 600_000 // all minutes of a year
	compareYears  = 30
	compareStride = time.Hour
)

// sameTicks reports whether two schedules name the same ticks from now on, of
// which so many are compared one by one, and then one an hour.
func sameTicks(a *ticks.Ticks, b *schedule.Schedule, now time.Time, most int) bool {
	t, end, far := now, now.Add(compareFor), now.AddDate(compareYears, 0, 0)
	for n := 0; t.Before(end) || n < compareLeast && t.Before(far); n++ {
		next := a.Next(t)
		if !next.Equal(b.Next(t)) {
			return false
		}
		if next.IsZero() {
			return true
		}
		if t = next; n > most {
			t = t.Add(compareStride).Truncate(compareStride).Add(-time.Second)
		}
	}
	return true
}

// oftener reports whether a job has ticks that are nearer to each other than d.
func oftener(j soloist.Job, d time.Duration, now time.Time) bool {
	s, err := wakeUps(j)
	if err != nil {
		return false
	}
	t := s.Next(now)
	for range compareLeast {
		next := s.Next(t)
		if next.IsZero() {
			return false
		}
		if next.Sub(t) < d {
			return true
		}
		t = next
	}
	return false
}
