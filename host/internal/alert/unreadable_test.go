package alert_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A record that cannot be read is one incident each time, and none if that is short.
func TestUnreadableRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		unreadable := func(d time.Duration) {
			w.set("report", func(st *soloist.JobStatus) { st.Err = errors.New("the record has schema 99") })
			time.Sleep(d)
			w.set("report", func(st *soloist.JobStatus) { st.Err = nil })
			time.Sleep(time.Minute)
		}
		w.end("report", store.Succeeded)
		time.Sleep(time.Minute)
		unreadable(50 * time.Second)
		w.want()
		unreadable(time.Hour)
		w.want("report unreadable alert", "report unreadable recovered")
		if got, want := w.got[0].Text, "cannot be read: the record has schema 99"; !strings.Contains(got, want) {
			t.Errorf("got the text %q, want %q", got, want)
		}
		unreadable(time.Hour)
		w.want("report unreadable alert", "report unreadable recovered", "report unreadable alert", "report unreadable recovered")
		if w.got[0].ID == w.got[2].ID {
			t.Errorf("two incidents have the id %q", w.got[0].ID)
		}
	})
}

// While the store is out of reach that is the incident, and not each record.
func TestUnreadableRecordsInOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.end("report", store.Succeeded)
		time.Sleep(time.Minute)
		w.change(func() { w.replicas[0].health.Storage = errors.New("no route") })
		w.set("report", func(st *soloist.JobStatus) { st.Err = errors.New("no route") })
		time.Sleep(time.Hour)
		w.want("storage alert")
		w.change(func() { w.replicas[0].health.Storage = nil })
		time.Sleep(50 * time.Second)
		w.set("report", func(st *soloist.JobStatus) { st.Err = nil })
		time.Sleep(time.Hour)
		w.want("storage alert", "storage recovered")
	})
}

// A record that a newer program has written can be read by some replicas alone. That is told
// once, and not each time that they look in turn.
func TestRecordThatSomeReplicasCanRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.end("report", store.Succeeded)
		time.Sleep(time.Minute)
		w.change(func() { w.replicas[0].blind = true })
		time.Sleep(time.Hour)
		w.want("report unreadable alert", "report unreadable recovered")
		w.set("report", func(st *soloist.JobStatus) { st.Err = errors.New("the record has schema 99") }) // now none can
		time.Sleep(time.Hour)
		w.want("report unreadable alert", "report unreadable recovered", "report unreadable alert")
	})
}

// A replica that cannot read a record was told of by one alert, which is over since others can read
// it. When none of those is left the job does not run, which is an incident of its own.
func TestLastReplicaThatCanReadIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.end("report", store.Succeeded)
		time.Sleep(time.Minute)
		w.change(func() { w.replicas[0].blind = true })
		time.Sleep(time.Hour)
		want := []string{"report unreadable alert", "report unreadable recovered"}
		w.replicas[1].die()
		time.Sleep(time.Hour)
		w.want(want...) // one can read it still
		w.replicas[2].die()
		time.Sleep(10 * time.Minute)
		want = append(want, "report unreadable alert")
		w.want(want...)
		time.Sleep(48 * time.Hour)
		w.want(want...)
		if len(w.got) < 3 {
			t.FailNow()
		}
		if w.got[0].ID == w.got[2].ID || !w.got[2].Since.After(w.got[1].Over) {
			t.Errorf("two incidents: got the ids %q and %q, since %s and %s", w.got[0].ID, w.got[2].ID, w.got[0].Since, w.got[2].Since)
		}
		w.add("r3")
		time.Sleep(time.Hour)
		w.want(append(want, "report unreadable recovered")...)
	})
}

// The replicas write to each other only while some can read a record that others cannot, and
// seldom.
func TestRepliesAboutAnUnreadableRecordAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		writes := func(d time.Duration) int {
			w.change(func() { w.writes = 0 })
			time.Sleep(d)
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.writes
		}
		w.end("report", store.Succeeded)
		time.Sleep(time.Minute)
		w.change(func() { w.replicas[0].blind = true })
		time.Sleep(time.Hour)
		if n := writes(24 * time.Hour); n < 24*2 || n > 24*60/5*2 {
			t.Errorf("%d writes in a day while one replica cannot read the record, want at most two each five minutes", n)
		}
		w.change(func() { w.replicas[0].blind = false })
		time.Sleep(10 * time.Minute)
		if n := writes(24 * time.Hour); n > 0 {
			t.Errorf("%d writes in a day in which all is well", n)
		}
	})
}
