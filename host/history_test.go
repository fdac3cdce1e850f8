package host_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// aged runs some ticks over a store. The first run of each record waits a second
// for its token. Dates with a fraction of a second tell the time exactly, so that
// runs which start at once have the same start.
func aged(t *testing.T, backend store.Store) host.Program {
	t.Helper()
	slow := soloist.Job{Name: "slow", Schedule: "@every 1m", Do: func(context.Context, *soloist.Run) error {
		time.Sleep(150*time.Second + 250*time.Millisecond)
		return soloist.Skip("nothing new")
	}}
	p := host.Program{Work: append(work(), slow), Store: backend}
	time.Sleep(250 * time.Millisecond)
	run(t.Context(), p, "tick")
	time.Sleep(time.Minute)
	run(t.Context(), p, "tick")
	time.Sleep(90 * time.Minute)
	run(t.Context(), p, "tick")
	return p
}

func TestHistory(t *testing.T) {
	bubble(t, []string{"CONTAINER_APP_REPLICA_NAME=replica-a"}, func(t *testing.T) {
		p := aged(t, &local.Memory{})
		wantRun(t, p, "history", 0, `
			app demo on *local.Memory, 2000-01-01 01:36:01Z

			JOB           TICK                                                     FATE       ATTEMPT  REPLICA    START                 TOOK      TOKEN            REASON
			beat          2000-01-01 01:33:00Z                                     succeeded  1        replica-a  2000-01-01 01:33:31Z  0s        946684861000001  -
			beat          after 2000-01-01 00:01:00Z .. 2000-01-01 01:32:00Z (91)  missed     -        -          -                     -         -                a newer one was due
			beat          2000-01-01 00:01:00Z                                     succeeded  1        replica-a  2000-01-01 00:01:01Z  0s        946684861000000  -
			night-report  2000-01-01 01:30:00Z                                     failed     1        replica-a  2000-01-01 01:33:32Z  0s        946690412000000  no paper
			slow          after 2000-01-01 01:33:00Z .. 2000-01-01 01:36:00Z (3)   skipped    -        -          -                     -         -                overlap
			slow          2000-01-01 01:33:00Z                                     skipped    1        replica-a  2000-01-01 01:33:31Z  2m30.25s  946684861000001  nothing new
			slow          after 2000-01-01 00:03:00Z .. 2000-01-01 01:32:00Z (89)  missed     -        -          -                     -         -                a newer one was due
			slow          after 2000-01-01 00:01:00Z .. 2000-01-01 00:03:00Z (2)   skipped    -        -          -                     -         -                overlap
			slow          2000-01-01 00:01:00Z                                     skipped    1        replica-a  2000-01-01 00:01:01Z  2m30.25s  946684861000000  nothing new

			JOB           STATE       COUNTS
			beat          idle        2 succeeded, 91 missed
			night-report  failing x1  1 failed
			slow          idle        7 skipped, 89 missed
			leader        no record   -
		`)
	})
}

// A range whose count stopped is told as such by log, history, JSON and page.
func TestHistoryOfLongRange(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{soloist.Job{Name: "often", Schedule: "@every 1s", Missed: soloist.SkipMissed, StartingDeadline: time.Millisecond, Do: do}}}
		run(t.Context(), p, "tick")
		time.Sleep(48*time.Hour + 500*time.Millisecond)
		wantLines(t, p, "tick", 0, "at least 100000")
		wantLines(t, p, "history", 0, "(at least 100000)")
		wantLines(t, p, "history --json", 0, `"atLeast": true`)
		wantLines(t, p, "status", 0, "at least 100000 missed")
	})
}

func TestHistoryInJSON(t *testing.T) {
	bubble(t, []string{replicaName + "replica-a"}, func(t *testing.T) {
		wantJSON(t, aged(t, &local.Memory{}), "history night-report --json", 0, `
			{"app":"demo","store":"*local.Memory","time":"2000-01-01T01:36:01.761Z","jobs":[
			{"job":"night-report","kind":"job","state":"failing","failures":1,"history":[
			{"id":"night-report@2000-01-01T01:30:00Z","tick":"2000-01-01T01:30:00Z","status":"failed","reason":"no\npaper",
			"attempt":1,"token":946690412000000,"replica":"replica-a",
			"start":"2000-01-01T01:33:32.532Z","end":"2000-01-01T01:33:32.532Z"}],"counts":{"failed":1}}]}
		`)
	})
}

// led is a singleton that replica-b has led for so long, until it was stopped.
func led(t *testing.T, backend store.Store, d time.Duration) []soloist.Work {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(d, cancel).Stop()
	leader := soloist.Singleton{Name: "leader", Do: untilCancelled}
	other := soloist.Scheduler{App: "demo", Replica: "replica-b", Store: backend, Singletons: []soloist.Singleton{leader}}
	must(t, other.Run(ctx))
	return []soloist.Work{leader}
}

// A singleton has terms and no ticks. The first one waits for its token. A replica that stops is no failure of it.
func TestHistoryOfSingleton(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}}
		p.Work = led(t, p.Store, 90*time.Second)
		wantRun(t, p, "history", 0, `
			app demo on *local.Memory, 2000-01-01 00:01:30Z

			JOB     TICK  FATE       ATTEMPT  REPLICA    START                 TOOK       TOKEN            REASON
			leader  -     abandoned  1        replica-b  2000-01-01 00:00:02Z  1m28.989s  946684801000000  stopped

			JOB     STATE  COUNTS
			leader  idle   1 abandoned
		`)
		got := open(t, p).get("/api/v1/jobs")
		wantAnswer(t, "list", got, 200, "abandoned", `"trouble":0`)
		wantNone(t, "list", got.Body.String(), `"trouble":true`)
	})
}

// A changed schedule leaves a range whose ticks nobody has counted, and a dead
// runner a run without an end.
func TestHistoryOfWhatIsNotKnown(t *testing.T) {
	environment(t)
	now := time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)
	record := store.Record{App: "demo", Job: "beat", Created: now, Watermark: now, Token: 7, Run: store.Run{Status: store.Abandoned},
		Counts: map[store.Status]int64{store.Abandoned: 1},
		History: []store.Outcome{
			{From: now.Add(-2 * time.Hour), Tick: now.Add(-time.Hour), Status: store.Missed, Reason: "the schedule changed"},
			{Tick: now.Add(-2 * time.Hour), Status: store.Abandoned, Reason: "its runner\n\x1b[2Jdied", Attempt: 2, Token: 7, Replica: "replica-a",
				Start: now.Add(-2 * time.Hour)},
		}}
	b, err := json.Marshal(record)
	must(t, err)
	backend := &local.Memory{}
	put(t, backend, "demo/beat", string(b), false)
	p := host.Program{Work: work()[:1], Store: backend, Now: func() time.Time { return now }}
	wantRun(t, p, "history", 0, `
		app demo on *local.Memory, 2026-03-29 12:00:00Z

		JOB   TICK                                                              FATE       ATTEMPT  REPLICA    START                 TOOK  TOKEN  REASON
		beat  after 2026-03-29 10:00:00Z .. 2026-03-29 11:00:00Z (not counted)  missed     -        -          -                     -     -      the schedule changed
		beat  2026-03-29 10:00:00Z                                              abandoned  2        replica-a  2026-03-29 10:00:00Z  -     7      its runner \x1b[2Jdied

		JOB   STATE  COUNTS
		beat  idle   1 abandoned
	`)
}

func TestHistoryThatCannotBeRead(t *testing.T) {
	environment(t)
	backend := &local.Memory{}
	put(t, backend, "demo/beat", `{"schema":99}`, false)
	now := time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)
	p := host.Program{Work: work(), Store: backend, Now: func() time.Time { return now }}
	wantRun(t, p, "history", 1, `
		app demo on *local.Memory, 2026-03-29 12:00:00Z

		JOB           STATE      COUNTS
		beat          broken     the record has schema 99 and this program reads up to 1: update the program
		night-report  no record  -
		leader        no record  -
	`)
	wantLines(t, p, "history night-report", 0)
}

// rows are the ticks and outcomes in a table of history.
func rows(out string) (all []string) {
	for line := range strings.Lines(out) {
		for _, s := range []string{"succeeded", "failed", "skipped", "missed", "abandoned"} {
			if before, _, ok := strings.Cut(line, "  "+s+"  "); ok && !strings.HasPrefix(line, " ") {
				all = append(all, strings.Join(strings.Fields(before), " ")+" "+s)
			}
		}
	}
	return all
}

func TestHistoryOfSome(t *testing.T) {
	environment(t, "CONTAINER_APP_REPLICA_NAME=replica-a")
	const newest, first, late = "beat 2000-01-01 01:33:00Z succeeded", "beat 2000-01-01 00:01:00Z succeeded", "beat after 2000-01-01 00:01:00Z .. 2000-01-01 01:32:00Z (91) missed"
	const report = "night-report 2000-01-01 01:30:00Z failed"
	synctest.Test(t, func(t *testing.T) {
		p := aged(t, &local.Memory{})
		p.Work = p.Work[:2]
		for _, tt := range []struct {
			args string
			want []string
		}{
			{"--job beat", []string{newest, late, first}},
			{"beat --outcome succeeded", []string{newest, first}},
			{"--outcome succeeded,failed -n 1", []string{newest, report}},
			{"--outcome missed --outcome failed", []string{late, report}},
			{"--since 1h", []string{newest, late, report}},
			{"--since 1d --limit 2", []string{newest, late, report}},
			{"--since 2000-01-01T01:32:30Z", []string{newest, report}}, // the report ended after that
			{"beat --since 2000-01-01", []string{newest, late, first}},
			{"beat@2000-01-01T00:01:00Z", []string{first}},
			{"beat@2000-01-01T01:01:00+01:00", []string{first}},
			{"beat@2000-01-01T01:00:00Z", []string{late}},
		} {
			got := run(t.Context(), p, append([]string{"history"}, strings.Fields(tt.args)...)...)
			if !slices.Equal(rows(got.out), tt.want) || got.code != 0 {
				t.Errorf("%s: got %d, %q, want %q", tt.args, got.code, rows(got.out), tt.want)
			}
		}
		if got := run(t.Context(), p, "history", "beat@2000-01-01 00:01:00Z"); !slices.Equal(rows(got.out), []string{first}) {
			t.Errorf("as the table shows it: got %+v", got)
		}
		const none = "demo: history: the record has no outcome of beat@2000-01-02T00:01:00Z: it keeps the newest ones only, and none of a run that has not ended, which status shows\n"
		wantLines(t, p, "history beat@2000-01-02T00:01:00Z", 1, none)
	})
}

// The id in the history is the one that the run had, so a line of a log leads here, also of a run by hand.
func TestHistoryByIDOfRun(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		runs := &noted{}
		p := steered(runs)
		stop := replica(t, p, "replica-a")
		time.Sleep(time.Hour + time.Minute)
		run(t.Context(), p, "run", "beat", "--request", "by:hand")
		stop()
		wantEqual(t, "ran", runs.all(), []string{"beat@2000-01-01T01:00:00Z", "beat@by:hand"})
		for _, id := range runs.all() {
			got := run(t.Context(), p, "history", id, "--json")
			wantEqual(t, "outcomes", strings.Count(got.out, `"id": `), 1)
			wantText(t, "history", got.out, `"id": "`+id+`"`)
		}
	})
}
