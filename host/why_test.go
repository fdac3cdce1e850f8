package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

// A scene is a day of some replicas over one store, from 2000-01-01 00:00 on. Each of them can be cut off from it.
type scene struct {
	t        *testing.T
	p        host.Program
	replicas map[string]*actor
}

type actor struct {
	gate *gated
	web  piped
	stop func()
}

func newScene(t *testing.T, groups map[string]int, work ...soloist.Work) *scene {
	return &scene{t, host.Program{Work: work, Groups: groups, Store: &local.Memory{}, Stdout: io.Discard}, map[string]*actor{}}
}

// up starts a replica.
func (s *scene) up(name string, settings ...string) {
	s.t.Helper()
	environment(s.t, append(settings, replicaName+name)...)
	a := &actor{gate: newGated(s.p.Store, nil), web: newPiped()}
	p := s.p
	p.Store = a.gate
	cancel, code := serveOn(s.t, p, a.web)
	a.stop = sync.OnceFunc(func() { cancel(); <-code })
	s.replicas[name] = a
	synctest.Wait() // it has read its settings
	environment(s.t)
}

// until lets time pass until a time of day.
func (s *scene) until(clock string) {
	s.t.Helper()
	at, err := time.Parse("2006-01-02 15:04:05", "2000-01-01 "+clock)
	if err != nil {
		at, err = time.Parse("2006-01-02 15:04:05", clock)
	}
	must(s.t, err)
	time.Sleep(time.Until(at))
}

// end stops all replicas. The end of one that was cut off takes some time.
func (s *scene) end() {
	for _, a := range s.replicas {
		a.stop()
	}
}

func (s *scene) stop(name string) { s.replicas[name].stop() }

// cut takes the store out of reach for a replica, for good if nothing lets it back: to all others, it was killed.
func (s *scene) cut(name string)  { s.replicas[name].gate.set(refuse(errDown)) }
func (s *scene) back(name string) { s.replicas[name].gate.set(nil) }

// play does one thing after the other: "up a SETTING=x", "until 00:05:00", "stop a", "cut a", "back a", "do" a command, or
// "schedule @hourly", which is deployed from then on.
func (s *scene) play(script string) {
	s.t.Helper()
	for step := range strings.SplitSeq(script, "; ") {
		verb, what, _ := strings.Cut(step, " ")
		switch verb {
		case "up":
			words := strings.Fields(what)
			s.up(words[0], words[1:]...)
		case "schedule":
			s.p.Work = works{each5(do, func(j *soloist.Job) { j.Schedule = what })}
		default:
			map[string]func(string){"until": s.until, "stop": s.stop, "cut": s.cut, "back": s.back, "do": s.do}[verb](what)
		}
	}
}

func (s *scene) do(command string) {
	s.t.Helper()
	if got := run(s.t.Context(), s.p, strings.Fields(command)...); got.code != 0 {
		s.t.Errorf("%s: got %+v", command, got)
	}
}

// A reasonTold is what why tells.
type reasonTold struct {
	Cause, Sentence, Now string
	Known, NotKnown      []string
}

func (s *scene) why(question string) (w reasonTold) {
	s.t.Helper()
	got := run(s.t.Context(), s.p, append([]string{"why", "--json"}, strings.Split(question, " ")...)...)
	if err := json.Unmarshal([]byte(got.out), &w); err != nil {
		s.t.Fatalf("why %s: %v: %+v", question, err, got)
	}
	return w
}

// asked asks the API of a replica.
func (s *scene) asked(replica, job, at string) (w reasonTold) {
	s.t.Helper()
	query := url.Values{}
	if at != "" {
		query.Set("at", at)
	}
	got := s.replicas[replica].web.get(s.t, "/api/v1/jobs/"+job+"/why?"+query.Encode())
	if err := json.Unmarshal(got.Body.Bytes(), &w); err != nil || got.Code != 200 {
		s.t.Fatalf("%v: %s", err, got.Body)
	}
	return w
}

func each5(do func(context.Context, *soloist.Run) error, change ...func(*soloist.Job)) soloist.Job {
	j := soloist.Job{Name: "report", Schedule: "*/5 * * * *", Do: do}
	for _, f := range change {
		f(&j)
	}
	return j
}

// lasts is a run of that length.
func lasts(d time.Duration) func(context.Context, *soloist.Run) error {
	return func(ctx context.Context, _ *soloist.Run) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lastsAt is a run of that length for one tick; the others end at once.
func lastsAt(clock string, d time.Duration) func(context.Context, *soloist.Run) error {
	return func(ctx context.Context, r *soloist.Run) error {
		if r.Tick.Format("15:04") == clock {
			return lasts(d)(ctx, r)
		}
		return nil
	}
}

func failAt(clock string) func(context.Context, *soloist.Run) error {
	return func(_ context.Context, r *soloist.Run) error {
		if r.Tick.Format("15:04") == clock {
			return errors.New("no paper")
		}
		return nil
	}
}

type works = []soloist.Work

// mail follows the report; taker has the slot of its group from 00:04 to 00:18.
var (
	mail  = soloist.Job{Name: "mail", After: soloist.After{Jobs: []string{"report"}}, Do: do}
	taker = soloist.Job{Name: "long", Schedule: "4 * * * *", Group: "imports", Do: lasts(14 * time.Minute)}
)

// scenes are played with a true cause that is known.
var scenes = []struct {
	name     string
	groups   map[string]int
	work     works
	play     string
	question string
	cause    string
	says     []string
}{
	{"no replica was up", nil, works{each5(do)}, "up a; until 00:11:00; stop a; until 00:22:30; up b; until 00:23:00",
		"report 00:15", "down",
		[]string{"no replica was up from 2000-01-01 00:11:00Z, when a had stopped, to 2000-01-01 00:22:30Z, when b started"}},
	{"the only replica was killed", nil, works{each5(do)},
		"up a; until 00:13:30; cut a; until 00:22:30; up b; until 00:23:00", "report", "down",
		[]string{"when a last said that it was up, to 2000-01-01 00:22:30Z, when b started"}},
	{"no replica is up now", nil, works{each5(do)}, "up a; until 00:11:00; stop a; until 00:18:00", "report", "down",
		[]string{"no replica was up from 2000-01-01 00:11:00Z on, when a had stopped"}},
	{"the storage was out of reach, by the command", nil, works{each5(do)},
		"up a; until 00:11:00; cut a; until 00:22:30; back a; until 00:27:00", "report 00:15", "unclaimed",
		[]string{"though a was up"}},
	{"a failure", nil, works{each5(failAt("00:10"))}, "up a; until 00:16:00", "report", "failed",
		[]string{"it ran on a, and failed: no paper"}},
	{"it found nothing to do", nil,
		works{each5(func(context.Context, *soloist.Run) error { return soloist.Skip("no files") })},
		"up a; until 00:06:00", "report", "declined", []string{"its function skipped it: no files"}},
	{"overlap", nil, works{each5(lastsAt("00:05", 12*time.Minute))}, "up a; until 00:21:00", "report 00:10",
		"overlap",
		[]string{"the run before, for the tick of 2000-01-01 00:05:00Z, on a, took until 2000-01-01 00:17:0"}},
	{"overlap, and the run goes on", nil, works{each5(lasts(time.Hour))}, "up a; until 00:11:00", "report", "overlap",
		[]string{"for the tick of 2000-01-01 00:05:00Z, on a, goes on since 2000-01-01 00:05:0"}},
	{"overlap with one that waits", nil,
		works{each5(lastsAt("00:05", 12*time.Minute), func(j *soloist.Job) { j.Overlap = soloist.QueueOne })},
		"up a; until 00:21:00", "report 00:10", "overlap", []string{"took until 2000-01-01 00:17:0"}},
	{"overlap with a run by hand", nil, works{each5(func(ctx context.Context, r *soloist.Run) error {
		if r.Request != "" {
			return lasts(6*time.Minute)(ctx, r)
		}
		return nil
	})}, "up a; until 00:06:00; do run report --request mine; until 00:16:00", "report 00:10", "overlap",
		[]string{"by hand: mine, on a, took until 2000-01-01 00:12:"}},
	{"replaced", nil,
		works{each5(lastsAt("00:05", 12*time.Minute), func(j *soloist.Job) { j.Overlap = soloist.Replace })},
		"up a; until 00:12:00", "report 00:05", "replaced", []string{"its run was replaced by "}},
	{"paused by an operator, and resumed", nil, works{each5(do)},
		"up a; until 00:07:00; do pause report --by anna --reason disks; until 00:12:00; do resume report --by bert; until 00:16:00",
		"report", "paused-by-order", []string{"the job was paused by anna at 2000-01-01 00:07:00Z: disks"}},
	{"paused by an operator until a time", nil, works{each5(do)},
		"up a; until 00:07:00; do pause report --by anna --until 1h; until 00:12:00", "report", "paused-by-order",
		[]string{"the job is paused by anna at 2000-01-01 00:07:00Z until 2000-01-01 01:07:00Z, who gave no reason"}},
	{"paused by its settings", nil, works{each5(do)}, "up a SOLOIST_JOB_REPORT_PAUSED=true; until 00:12:00", "report",
		"paused-by-settings", []string{"paused by its settings", "on a"}},
	{"paused itself", nil, works{each5(fail, func(j *soloist.Job) { j.Retry.PauseAfter = 2 })},
		"up a; until 00:16:00", "report 00:15", "paused-itself", []string{"paused by itself at 2000-01-01 00:10:0",
			"after 2 failures in a row"}},
	{"had paused itself", nil, works{each5(func(_ context.Context, r *soloist.Run) error {
		if r.Tick.Minute() < 15 {
			return errors.New("no paper")
		}
		return nil
	}, func(j *soloist.Job) { j.Retry.PauseAfter = 2 })}, "up a; until 00:17:00; do resume report; until 00:21:00",
		"report 00:15", "paused-itself", []string{"the job had paused itself after 2 failures in a row"}},
	{"its group was full", map[string]int{"imports": 1},
		works{each5(do, func(j *soloist.Job) { j.Group = "imports" }),
			taker}, "up a; until 00:21:00", "report 00:10", "group-full",
		[]string{"no slot of group imports, which has 1, was free"}},
	{"its group is full", map[string]int{"imports": 1}, works{each5(do, func(j *soloist.Job) { j.Group = "imports" }),
		taker}, "up a; until 00:07:00", "report", "group-full",
		[]string{"no slot of group imports is free: long run"}},
	{"its predecessor failed", nil, works{each5(failAt("00:10")), mail}, "up a; until 00:16:00", "mail",
		"predecessor", []string{"its predecessor report did not succeed: it failed", "! report: failed (no paper)"}},
	{"its predecessor runs still", nil, works{each5(lasts(time.Hour)), mail}, "up a; until 00:09:00", "mail",
		"predecessor", []string{"it waits for the outcome of report", "! report runs on a since 2000-01-01 00:05:0"}},
	{"cancelled", nil, works{each5(lasts(time.Hour))},
		"up a; until 00:06:00; do cancel report --by anna --reason wrong; until 00:07:00", "report", "cancelled",
		[]string{"it was cancelled by anna: wrong"}},
	{"unlocked", nil, works{each5(lasts(time.Hour))},
		"up a; until 00:06:00; cut a; do unlock report --now --yes; up b; until 00:08:00", "report 00:05", "unlocked",
		[]string{"its job was unlocked by ", "while it ran on a"}},
	{"its runner died", nil, works{each5(lastsAt("00:05", time.Hour))},
		"up a; until 00:06:00; up b; cut a; until 00:08:00", "report", "died",
		[]string{"it began on a, whose lease ended without an outcome: the runner died", "! no Interrupted: Rerun"}},
	{"its runner died, and it was run again", nil, works{each5(func(ctx context.Context, r *soloist.Run) error {
		if r.Attempt == 1 && r.Tick.Minute() == 5 {
			return lasts(time.Hour)(ctx, r)
		}
		return nil
	}, func(j *soloist.Job) { j.Interrupted = soloist.Rerun })}, "up a; until 00:06:00; up b; cut a; until 00:08:00",
		"report 00:05", "succeeded", []string{"it succeeded", "! that was attempt 2", "! it began on b"}},
	{"it waits for a replica that takes over", nil,
		works{each5(lasts(time.Hour), func(j *soloist.Job) { j.Interrupted = soloist.Rerun })},
		"up a; until 00:05:30; cut a; until 00:09:00", "report", "waiting",
		[]string{"it began on a at 2000-01-01 00:05:0", "waits for a replica that takes over"}},
	{"its replica was stopped", nil, works{each5(lasts(time.Hour))}, "up a SOLOIST_GRACE=2s; until 00:06:00; stop a",
		"report", "stopped", []string{"it began on a, which was stopped before the end"}},
	{"the starting deadline had passed", nil, works{each5(do, func(j *soloist.Job) { j.Late.Start = time.Minute })},
		"up a; until 00:06:00; stop a; until 00:12:00; up b; until 00:16:00", "report 00:10", "down",
		[]string{"no replica ran it in time: no replica was up from 2000-01-01 00:06:00Z, when a had stopped, to 2000-01-01 00:12:00Z",
			"! its starting deadline is 1m0s"}},
	{"the runner before had the lease", nil,
		works{each5(lastsAt("00:05", time.Hour), func(j *soloist.Job) { j.Late.Start = time.Second })},
		"up a; until 00:06:00; up b; until 00:09:50; cut a; until 00:16:00", "report 00:10", "died",
		[]string{"ran it in time: the run before, for the tick of 2000-01-01 00:05:00Z, on a, had no end, since its runner died"}},
	{"another definition was in force", nil, works{each5(do)},
		"up a; until 00:06:00; stop a; until 00:12:00; schedule 3-59/5 * * * *; up b; until 00:14:00",
		"report 2000-01-01T00:10:00Z", "definition", []string{"the definition of the job changed at 2000-01-01 00:1",
			"with b"}},
	{"it stalled", nil,
		works{each5(lastsAt("00:05", time.Hour), func(j *soloist.Job) { j.HeartbeatTimeout = time.Minute })},
		"up a; until 00:08:00", "report", "stalled", []string{"it ran on a, which made no progress"}},
	{"it runs", nil, works{each5(lasts(3 * time.Minute))}, "up a; until 00:06:00", "report 00:05", "running",
		[]string{"it runs on a since 2000-01-01 00:05:0", "for the tick of 2000-01-01 00:05:00Z"}},
	{"clocks go forward", nil,
		works{each5(do, func(j *soloist.Job) { j.Schedule, j.TimeZone = "30 2 * * *", "Europe/Berlin" })},
		"until 2000-03-25 20:00:00; up a; until 2000-03-26 08:00:00", "report 02:30", "no-such-time",
		[]string{"02:30 does not exist on 2000-03-26 in Europe/Berlin: clocks go forward from 02:00 to 03:00, where its tick is, ",
			"2000-03-26 01:00:00Z; as for that, it succeeded"}},
	{"a singleton that was handed over", nil, works{soloist.Singleton{Name: "leader", Do: lasts(time.Hour)}},
		"up a; until 00:03:00; cut a; up b; until 00:06:00", "leader", "died",
		[]string{"it began on a, whose lease ended without an outcome"}},
}

// Each cause that was played is told.
func TestWhyTellsTheTrueCause(t *testing.T) {
	for _, c := range scenes {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			bubble(t, nil, func(t *testing.T) {
				s := newScene(t, c.groups, c.work...)
				defer s.end()
				s.play(c.play)
				wantTold(t, s.why(c.question), c.cause, c.says...)
			})
		})
	}
}

// wantTold wants this cause, and these parts of the sentence; after "! ", of what is known.
func wantTold(t *testing.T, got reasonTold, cause string, says ...string) {
	t.Helper()
	for _, part := range says {
		where := got.Sentence
		if rest, ok := strings.CutPrefix(part, "! "); ok {
			part, where = rest, strings.Join(got.Known, "\n")
		}
		if !strings.Contains(where, part) {
			t.Errorf("got no %q in %q", part, where)
		}
	}
	if got.Cause != cause || t.Failed() {
		t.Errorf("want %s, got %+v", cause, got)
	}
}

// A replica that serves knows what it has met itself: its API tells of its outage.
func TestWhyByTheReplica(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		s := newScene(t, nil, each5(do))
		defer s.end()
		s.play("up a; until 00:12:00; cut a; until 00:22:30; back a; until 00:26:00")
		wantTold(t, s.asked("a", "report", "00:15"), "outage", "no replica ran it before a newer tick was due: the storage was out of reach for a from 2000-01-01 00:1", "to 2000-01-01 00:2")
		s.play("until 00:27:00; cut a; until 00:31:00")
		if got := s.asked("a", "report", ""); !strings.Contains(strings.Join(got.NotKnown, "\n"), "The store does not answer") {
			t.Errorf("in an outage got %+v", got)
		}
		s.play("back a; until 00:36:00")
		for path, code := range map[string]int{"report/why?at=25:00": 400, "report/why?tick=1": 400, "none/why": 404, "report/why": 200, "report/why?at=2000-01-01": 200} {
			wantCode(t, s.replicas["a"].web.get(t, "/api/v1/jobs/"+path).Code, code)
		}
		api := open(t, host.Program{Work: s.p.Work, Store: s.p.Store})
		described(t, api).wantAsDescribed(t, "GET", "/api/v1/jobs/report/why", api.get("/api/v1/jobs/report/why?at=00:15"))
	})
}

func TestWhyInWords(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		s := newScene(t, nil, each5(lastsAt("00:05", 7*time.Minute)), mail)
		defer s.end()
		s.up("a")
		s.until("00:13:00")
		wantRun(t, s.p, "why mail 00:10", 0, `
			mail, tick of 2000-01-01 00:10:00Z: its predecessor report did not succeed: it was skipped
			  known: report: skipped (overlap)
			  now: nothing is due: the next tick is 2000-01-01 00:15:00Z, in 2m
		`)
		wantLines(t, s.p, "why mail@2000-01-01T00:10:00Z", 0, "mail, tick of 2000-01-01 00:10:00Z: its predecessor")
		got := run(t.Context(), s.p, "history", "--why", "report")
		wantText(t, "history --why", got.out, "the run before, for the tick of 2000-01-01 00:05:00Z, on a, took until 2000-01-01 00:12:0")
		wantText(t, "history --why --json", run(t.Context(), s.p, "history", "--why", "report", "--json").out, `"why"`, `the run before, for the tick`)
		for command, text := range map[string]string{
			"why":                              "why: of which job?",
			"why nothing":                      `why: there is no job "nothing": want one of report, mail`,
			"why report 25:00":                 `why: "25:00": want a tick's instant such as`,
			"why nothing@2000-01-01T00:10:00Z": `why: there is no job "nothing": want`,
			"why report@by-hand":               `why: "by-hand": want a tick's instant such as`,
			"why report 2h --x":                "why: unknown flag -x: want --json",
			"history lock:x --why":             "history: --why is about the ticks of jobs",
			"why report \x1b[2J":               `why: "\x1b[2J": want`,
			"why report 99999999999999999999d": "want a tick's instant",
		} {
			run(t.Context(), s.p, strings.Split(command, " ")...).wants(t, command, 2, text)
		}
	})
}

// A store that is slow, or has gaps, is waited for for a bounded time, and what was not read is told.
func TestWhyOfStoreThatHangs(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		s := newScene(t, nil, each5(failAt("00:05")))
		defer s.end()
		s.up("a")
		s.until("00:06:00")
		p, gate := s.p, newGated(s.p.Store, nil)
		p.Store = gate
		ask := func(hangs ...string) (result, time.Duration) {
			begin := time.Now()
			gate.set(func(op, _ string) error {
				if slices.Contains(hangs, op) {
					time.Sleep(3 * time.Second)
					return errDown
				}
				return nil
			})
			got := run(t.Context(), p, "why", "report")
			return got, time.Since(begin)
		}
		got, took := ask("read document")
		got.wants(t, "without documents", 0, "it ran on a, and failed: no paper", "not known: what operators have ordered: ", "not known: which replicas were up: ")
		wantWithin(t, "without documents it took", took, 0, 10*time.Second)
		got, took = ask("read", "read document")
		wantWithin(t, "without the record it took", took, 0, 13*time.Second)
		got.wants(t, "without the record", 1, "its record could not be read: ", "not known: what became of its ticks")
	})
}

// The log of a month is not read back without an end: the answer says so.
func TestWhyOfLongLog(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		s := newScene(t, nil, soloist.Job{Name: "often", Schedule: "@every 1m", Do: do})
		backend, now := s.p.Store.(*local.Memory), time.Date(2000, 1, 31, 0, 0, 0, 0, time.UTC)
		s.until("2000-01-31 00:00:30")
		var text []byte
		size := int64(0)
		for tick := now.AddDate(0, 0, -30); tick.Before(now); tick = tick.Add(time.Minute) {
			text = fmt.Appendf(text, `{"tick":%[1]q,"status":"succeeded","token":%[2]d,"replica":"a","start":%[1]q,"end":%[1]q}`+"\n", tick.Format(time.RFC3339), tick.Unix())
			if last := tick.Add(time.Minute).Equal(now); len(text) > store.MaxAppend-1000 || last {
				must(t, backend.Append(t.Context(), store.LogName("demo/often", "000001"), size, text))
				size, text = size+int64(len(text)), nil
			}
		}
		put(t, backend, "demo/often", fmt.Sprintf(`{"schema":1,"app":"demo","job":"often","token":%d,"created":"2000-01-01T00:00:00Z","watermark":"2000-01-31T00:00:00Z","run":{"status":"idle"},`+
			`"history":[{"tick":"2000-01-31T00:00:00Z","status":"succeeded","token":%[1]d,"replica":"a","start":"2000-01-31T00:00:00Z"}]}`, now.Unix()), false)
		got := s.why("often 2000-01-05T00:10:00Z")
		wantTold(t, got, "not-kept", "its outcome, which is not kept any more")
		wantText(t, "not known", strings.Join(got.NotKnown, "\n"), "the log was not read back so far")
		wantTold(t, s.why("often 2000-01-30T23:00:00Z"), "succeeded", "it succeeded")
		wantTold(t, s.why("often"), "not-due", "the next tick is 2000-01-31 00:01:00Z", "! no outcome since 2000-01-30 07:")
	})
}

// Answers over real stores: what failed, was declined, and is paused.
func TestWhyOverRealStores(t *testing.T) {
	for name, storage := range map[string]func(*testing.T) proctest.Storage{
		"directory": func(t *testing.T) proctest.Storage { return proctest.Directory(t.TempDir()) },
		"Azurite":   func(t *testing.T) proctest.Storage { return proctest.Azurite(t) },
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, append(storage(t).Env(), replicaName+"a")...)
			byHand := func(j *soloist.Job) { j.Schedule = "@manual" }
			idle := each5(func(context.Context, *soloist.Run) error { return soloist.Skip("no files") }, byHand)
			idle.Name = "idle"
			s := &scene{t: t, p: host.Program{Work: works{each5(fail, byHand), idle}}}
			run(t.Context(), s.p, "run", "report", "--here")
			run(t.Context(), s.p, "run", "idle", "--here")
			wantTold(t, s.why("report"), "failed", "and failed: no paper")
			wantTold(t, s.why("idle"), "declined", "its function skipped it: no files")
			s.do("pause idle --by anna --reason disks")
			if got := s.why("idle"); !strings.Contains(got.Now, "it is paused by anna at ") {
				t.Errorf("got %+v", got)
			}
		})
	}
}
