package browser

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

// A sight is what somebody was shown of a job. Times are as the page writes them.
type sight struct {
	State, Replica, Tick string
	Ended                []string // the last outcomes, newest first: tick and status
}

func (s sight) equal(o sight) bool { return s.alike(o) && slices.Equal(s.Ended, o.Ended) }

// alike leaves out outcomes.
func (s sight) alike(o sight) bool {
	return s.State == o.State && s.Replica == o.Replica && s.Tick == o.Tick
}

// A moment is a sight, and when it was first there.
type moment struct {
	At      int64 // Unix milliseconds: what a browser counts
	Attempt int   // on the page: of the run under way, if it is a further one
	sight
}

func (m moment) String() string {
	return fmt.Sprintf("%s %s on %q, tick %q, after %q", time.UnixMilli(m.At).Format("15:04:05.000"), m.State, m.Replica, m.Tick, m.Ended[:min(1, len(m.Ended))])
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// follow has the tab note what the list shows of a job, whenever that changes.
func (b *tab) follow(job string) {
	b.t.Helper()
	b.do(chromedp.Evaluate(fmt.Sprintf(`(() => {
		window.sights = [];
		let last = '';
		const look = () => {
			const row = document.querySelector(%q);
			if (!row) return;
			const state = row.children[1], says = state.innerText;
			const s = {
				State: state.querySelector('.state').innerText,
				Replica: says.match(/^on ([^,\n]*)/m)?.[1] ?? '',
				Tick: says.match(/tick (\S+ \S+Z)/)?.[1] ?? '',
				Ended: [...row.querySelectorAll('.strip i')].reverse().map(i => i.title.replace(/^(\S+ \S+Z) (?:\d+ )?(\w+).*/s, '$1 $2')),
				Attempt: +(says.match(/attempt (\d+)/)?.[1] ?? 0),
			};
			const text = JSON.stringify(s);
			if (text !== last) window.sights.push({At: Date.now(), ...s});
			last = text;
		};
		look();
		new MutationObserver(look).observe(document.querySelector('main'), {childList: true, subtree: true, characterData: true, attributes: true});
	})()`, row(job)), nil))
}

// sights is what the list has shown of that job since follow.
func (b *tab) sights() []moment {
	b.t.Helper()
	return eval[[]moment](b, "window.sights")
}

// A watcher is a process of status --watch --json, and what it has shown of a job.
type watcher struct {
	mu  sync.Mutex
	all []moment
}

func watch(t *testing.T, f *fleet, job string) *watcher {
	t.Helper()
	w := &watcher{}
	p, err := proctest.Command{Program: proctest.Self(), Args: []string{"status", "--watch", "--json"}, Env: f.Env, Stdout: func(line string) {
		if err := w.note(line, job); err != nil {
			t.Errorf("status --watch --json: %v: %s", err, line)
		}
	}}.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return w
}

func (w *watcher) note(line, job string) error {
	var answer struct {
		Jobs []struct {
			Job, State, Replica string
			Tick                time.Time
			Last                *store.Outcome
		}
	}
	if err := json.Unmarshal([]byte(line), &answer); err != nil {
		return err
	}
	for _, j := range answer.Jobs {
		if j.Job != job {
			continue
		}
		m := moment{At: time.Now().UnixMilli(), sight: sight{State: j.State, Replica: j.Replica, Tick: stamp(j.Tick)}}
		if j.Last != nil {
			m.Ended = []string{ended(*j.Last)}
		}
		w.mu.Lock()
		w.all = append(w.all, m)
		w.mu.Unlock()
	}
	return nil
}

func (w *watcher) sights() []moment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

func ended(o store.Outcome) string { return stamp(o.Tick) + " " + string(o.Status) }

// A reader reads the record of a job all the time.
type reader struct {
	mu  sync.Mutex
	all []reading
}

// A reading is what the record said at some time between two.
type reading struct {
	begin, end int64 // Unix milliseconds
	sight
}

// read begins to read, until the test ends.
func read(t *testing.T, storage proctest.Storage, name string) *reader {
	t.Helper()
	r := &reader{}
	var done sync.WaitGroup
	done.Go(func() {
		for t.Context().Err() == nil {
			begin := time.Now()
			e, err := storage.Store.Read(t.Context(), name)
			if err == nil {
				r.note(t, begin, e)
			}
			proctest.Pause(t.Context(), 20*time.Millisecond)
		}
	})
	t.Cleanup(done.Wait)
	return r
}

func (r *reader) note(t *testing.T, begin time.Time, e store.Entry) {
	var record store.Record
	if err := json.Unmarshal(e.Record, &record); err != nil {
		t.Errorf("%v: %s", err, e.Record)
	}
	s := sightOf(&record, e.State)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, reading{begin.UnixMilli(), time.Now().UnixMilli() + 1, s})
}

// sightOf is what a record says, for somebody who reads it by themselves.
func sightOf(r *store.Record, lease store.LeaseState) (s sight) {
	for _, o := range r.History {
		s.Ended = append(s.Ended, ended(o))
	}
	switch {
	case r.Run.Status == store.Running && lease.Live():
		s.State, s.Replica, s.Tick = "running", r.Run.Replica, stamp(r.Run.Tick)
	case r.Run.Status == store.Running:
		s.State, s.Tick = "interrupted", stamp(r.Run.Tick)
	default:
		s.State = "idle"
	}
	return s
}

func (r *reader) readings() []reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	return between(r.all)
}

// wantFrom wants that each of these sights was in the record not long before, or has just
// come there. What was shown before the record said it has contradicted it.
func wantFrom(t *testing.T, who string, shown []moment, readings []reading) {
	t.Helper()
	const patience = 10_000
	for _, m := range shown {
		if m.State == "no record" || m.State == "unknown" {
			continue
		}
		var could []reading
		for i, r := range readings {
			if r.end >= m.At-patience && (i == 0 || readings[i-1].begin <= m.At) {
				could = append(could, r)
			}
		}
		if !slices.ContainsFunc(could, func(r reading) bool { return m.from(r.sight) }) {
			t.Errorf("%s showed %s; the record said none of that:%s", who, m, changes(could))
		}
	}
}

// between adds what the record must have said between two readings: that the lease of a run
// had expired, or that no run was under way.
func between(all []reading) (more []reading) {
	for i, is := range all {
		if i > 0 && is.State == "running" && all[i-1].State == "running" && !is.alike(all[i-1].sight) {
			r := reading{all[i-1].begin, is.end, sight{State: "idle", Ended: is.Ended}}
			if is.Tick == all[i-1].Tick {
				r.State, r.Tick = "interrupted", is.Tick
			}
			more = append(more, r)
		}
		more = append(more, is)
	}
	return more
}

// from reports whether this may be shown of a record that says s. The page shows all of its
// outcomes, status the last of a run.
func (m moment) from(s sight) bool {
	return m.alike(s) && !slices.ContainsFunc(m.Ended, func(text string) bool { return !slices.Contains(s.Ended, text) })
}

// changes lists what readings said, each once.
func changes(all []reading) string {
	var b strings.Builder
	for i, r := range all {
		if i == 0 || !r.equal(all[i-1].sight) {
			fmt.Fprintf(&b, "\n%s", moment{At: r.end, sight: r.sight})
		}
	}
	return b.String()
}
