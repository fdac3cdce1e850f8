package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/functions"
	"github.com/soloist-go/soloist/host/internal/locks"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/near"
	"github.com/soloist-go/soloist/internal/record"
)

// statusCommand shows what the records say. It fails if one could not be read.
type statusCommand struct {
	Job      []string `arg:"" optional:"" name:"JOB" complete:"work" help:"all that is known of these jobs, singletons or shards"`
	Failing  bool     `help:"only the jobs that are in trouble"`
	Exit     bool     `name:"exit-code" help:"1: something is in trouble"`
	Watch    bool     `short:"w" help:"go on until interrupted: a terminal shows the newest status, other outputs get a line for each change of a job"`
	Locks    bool     `help:"with all locks, and all that is done once; not given: 20 of each"`
	zoneFlag `embed:"" set:"unset=utc, with JOB job"`
	jsonFlag

	times zoning // as the flag says
}

func (c *statusCommand) do(ctx context.Context, a *app.App) int {
	if err := c.check(a); err != nil {
		return misused(a.Console, err)
	}
	if c.Watch {
		return c.watch(ctx, a)
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	all := a.Statuses(ctx)
	drift, fleet := functions.DriftWords(a), fleetOf(ctx, a, a.Replicas(), all)
	orders, code := ordersOf(ctx, a), exitOK
	views := c.choose(a, view.All(a, all, &orders, fleet))
	others, note, most := locks.Reading{}, "", fewLocks
	if slices.ContainsFunc(all, func(st desk.Status) bool { return st.EveryReplica || view.Reached(st) }) {
		others, note = locksOf(ctx, a) // else the store returns nothing, and the jobs say why
	}
	if c.Locks {
		most = math.MaxInt
	}
	shown := others.Shown(most)
	shown.LocksNote = cmp.Or(note, shown.LocksNote)
	absent := absence(a, ctx, all)
	body := view.Status(a, c.wanted(views), drift, fleet)
	body.Shown, body.Error = &shown, strings.Join(absent, "; ")
	if absent != nil {
		if !c.JSON {
			printDrift(a.Console, drift)
		}
		return c.absent(a, absent, body)
	}
	if slices.ContainsFunc(views, func(v view.Job) bool { return v.Error != "" || c.Exit && v.Wrong() }) {
		code = exitFail
	}
	return c.answer(a, code, body, func() {
		c.print(a, a.Console, a.Console.Width(), views, drift, fleet)
		if !c.narrowed() {
			printAlarm(ctx, a, c.times.clock(a, ""))
			printLocks(a.Console, c.times.clock(a, ""), shown)
		}
		printAdvice(a, all)
	})
}

// check reads the flags and the names of jobs.
func (c *statusCommand) check(a *app.App) error {
	var errs []error
	for _, name := range c.Job {
		errs = append(errs, app.Known(name, append(a.Names(), a.Wholes()...)))
	}
	var err error
	if c.times, err = c.read(); err != nil {
		errs = append(errs, fmt.Errorf("status: %w", err))
	}
	if c.Exit && c.Watch {
		errs = append(errs, errors.New("status: --exit-code and --watch: want one of them, as what is watched has no end"))
	}
	return errors.Join(errs...)
}

// narrowed reports whether it was asked for some jobs alone.
func (c *statusCommand) narrowed() bool { return c.Failing || len(c.Job) > 0 }

// choose returns the jobs that were named; all if none was.
func (c *statusCommand) choose(a *app.App, views []view.Job) []view.Job {
	if len(c.Job) == 0 {
		return views
	}
	return slices.DeleteFunc(views, func(v view.Job) bool {
		return !slices.Contains(c.Job, v.Name) && !slices.Contains(c.Job, a.Whole(v.Name))
	})
}

// wanted returns the jobs in trouble if they alone were asked for.
func (c *statusCommand) wanted(views []view.Job) []view.Job {
	if !c.Failing {
		return views
	}
	return slices.DeleteFunc(slices.Clone(views), func(v view.Job) bool { return !v.Wrong() })
}

// ordersOf are the orders of operators. Where they cannot be read the store does not
// answer, which the records show too, or it keeps none.
func ordersOf(ctx context.Context, a *app.App) record.Control {
	control, err := a.Control(ctx)
	if err != nil {
		return record.Control{}
	}
	return control
}

// printAdvice says once what to do where the store did not answer.
func printAdvice(a *app.App, all []desk.Status) {
	if a.Lost != "" {
		return
	}
	for _, st := range all {
		if st.Err == nil || view.Reached(st) {
			continue
		}
		if _, advice := a.Explain(st.Err); advice != "" {
			a.Console.Tell("%s", format.Line(advice))
			return
		}
	}
}

func printDrift(c app.Console, drift []string) {
	for _, text := range drift {
		fmt.Fprintln(c.Stdout, text)
	}
}

// print shows a table of the jobs, and what else there is to know; of jobs that were named, all that is known.
func (c *statusCommand) print(a *app.App, to app.Console, width int, views []view.Job, drift []string, fleet *view.Fleet) {
	clock, colour := c.times.clock(a, ""), to.OnTerminal(to.Stdout) && format.WantsColour()
	say := func(text string) { format.Wrapped(to.Stdout, text, width) }
	say(fmt.Sprintf("app %s on %s, %s", a.Settings.App, a.Place, clock.Date(clock.Now)))
	if text := format.SkewNote(a.Skew()); text != "" {
		say(text)
	}
	if text := a.ZoneWords(); text != "" {
		say(text)
	}
	if len(c.Job) > 0 {
		c.explain(a, to, width, c.wanted(views), clock)
		return
	}
	for _, text := range drift {
		say(text)
	}
	rows := view.Rows(a, views)
	say(troubleWords(rows))
	if c.Failing {
		rows = slices.DeleteFunc(rows, func(r view.Row) bool { return !r.Trouble() })
	}
	if len(rows) > 0 {
		fmt.Fprintln(to.Stdout)
		c.printJobs(a, to, rows, width, colour)
	}
	if !c.Failing {
		printReplicas(to, fleet, width, colour)
	}
	notes := view.NotesOf(rows, clock)
	if len(notes) > 0 {
		fmt.Fprintln(to.Stdout)
	}
	for _, line := range notes {
		say(line)
	}
}

// troubleWords say how many jobs there are, and how many of them are in trouble.
func troubleWords(rows []view.Row) string {
	bad := 0
	for _, r := range rows {
		if r.Trouble() {
			bad++
		}
	}
	text := cmp.Or(format.Plural(len(rows), "job"), "no jobs")
	if bad == 0 {
		return text + ", none in trouble"
	}
	return fmt.Sprintf("%s, %d in trouble", text, bad)
}

// printJobs shows the table. On a narrow terminal it says who is in which state.
func (c *statusCommand) printJobs(a *app.App, to app.Console, rows []view.Row, width int, colour bool) {
	g := format.NewGrid("NAME\tSTATE\tLAST\tNEXT\tSCHEDULE\tCOUNTS", 8, 10, 10, 8, 0, 0)
	for _, r := range rows {
		clock := c.times.clock(a, r.Name)
		clock.Short = true
		state, below := r.StateWords(clock)
		g.Row(r.Name, state, r.LastWords(clock), r.NextWords(clock), r.ScheduleWords(), r.Tally()).Tone(r.Tone()).Below(below)
	}
	g.Print(to.Stdout, width, colour)
	if view.Shards(rows) {
		format.Wrapped(to.Stdout, view.Legend, width)
	}
}

// explain shows all that is known of each job, in whole.
func (c *statusCommand) explain(a *app.App, to app.Console, width int, views []view.Job, clock format.Clock) {
	for _, v := range views {
		if c.Zone == nil || c.times.ofJob {
			clock.Zone = app.ZoneOf(a, v.Name)
		}
		fmt.Fprintln(to.Stdout)
		format.Wrapped(to.Stdout, v.Name, width)
		for _, line := range v.Lines(clock) {
			format.Titled(to.Stdout, fmt.Sprintf("  %-8s  ", line[0]), line[1], width)
		}
	}
}

// watchInterval is how long status --watch waits after each reading of the records.
const watchInterval = 2 * time.Second

// watch shows the status again and again until ctx ends. That is what its user
// wants, and no failure; neither is a reading that fails, which it shows.
func (c *statusCommand) watch(ctx context.Context, a *app.App) int {
	show, reader := (&changes{a: a, command: c, shown: map[string]string{}}).show, a.Replicas()
	if !c.JSON && a.Console.OnTerminal(a.Console.Stdout) {
		show = (&screen{a: a, command: c}).show
	}
	for ctx.Err() == nil {
		all, orders := readStatus(ctx, a)
		if ctx.Err() != nil { // what it has read may be no more than that
			return exitOK
		}
		fleet := fleetOf(ctx, a, reader, all)
		if !show(c.choose(a, view.All(a, all, &orders, fleet)), fleet) {
			return exitFail
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchInterval):
		}
	}
	return exitOK
}

func readStatus(ctx context.Context, a *app.App) ([]desk.Status, record.Control) {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	return a.Statuses(ctx), ordersOf(ctx, a)
}

// A screen shows the newest status on a terminal.
type screen struct {
	a       *app.App
	command *statusCommand
	full    bool // something is shown already
}

// Control functions of a terminal (ECMA-48): the cursor goes to the first line,
// and all after it is erased. A status that replaces another does not flicker.
const (
	toTop    = "\x1b[H"
	eraseAll = "\x1b[2J"
	eraseEnd = "\x1b[J"
	endLine  = "\x1b[K\n"
)

// show reports whether the status could be written.
func (s *screen) show(views []view.Job, fleet *view.Fleet) bool {
	var b bytes.Buffer
	c := s.a.Console
	c.Stdout, c.Terminal = &b, true
	s.command.print(s.a, c, s.a.Console.Width(), views, functions.DriftWords(s.a), fleet)
	fmt.Fprintf(&b, "\nread every %s; Ctrl-C ends it\n", watchInterval)
	text := toTop + string(bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(endLine))) + eraseEnd
	if !s.full {
		s.full, text = true, eraseAll+text
	}
	_, err := s.a.Console.Stdout.Write([]byte(text))
	return err == nil
}

// changes are written to a file or a pipe: a line for each job whose state, last
// outcome or error is another than in its last line.
type changes struct {
	a       *app.App
	command *statusCommand
	shown   map[string]string // by job
}

// show reports whether the changes could be written.
func (w *changes) show(views []view.Job, _ *view.Fleet) bool {
	for _, v := range views {
		key := changeKey(v)
		if w.command.Failing && !v.Wrong() && w.shown[v.Name] == "" {
			continue
		}
		if w.shown[v.Name] != key {
			w.shown[v.Name] = key
			if w.command.Failing && !v.Wrong() { // this was the end of it
				delete(w.shown, v.Name)
			}
			if err := w.line(v); err != nil {
				return false
			}
		}
	}
	return true
}

// changeKey is what a line is about. Times until the next tick and since the start
// of the run are no news, nor is a heartbeat, a checkpoint or an order that has not been followed.
func changeKey(v view.Job) string {
	v.Next, v.Progress, v.Differs, v.Checkpoint, v.Ordered = time.Time{}, nil, nil, 0, 0
	key, _ := json.Marshal(v) // which has no value that cannot be written
	return string(key)
}

func (w *changes) line(v view.Job) error {
	clock := w.command.times.clock(w.a, v.Name)
	if w.command.JSON {
		return format.WriteJSON(w.a.Console.Stdout, view.New(w.a, []view.Job{v}), "")
	}
	text := clock.Date(clock.Now) + "  " + v.Name + "  " + v.StateWords(clock)
	if v.Last != nil {
		text += "; last " + v.LastWords(clock)
	}
	if v.Error != "" {
		text += "; " + v.Error
	}
	_, err := fmt.Fprintln(w.a.Console.Stdout, text)
	return err
}

// lister is a store that can list the apps that have entries in it.
// fs.ErrNotExist: its place does not exist, such as a container.
type lister interface {
	Apps(ctx context.Context) ([]string, error)
}

// maxListed bounds how many apps an answer names.
const maxListed = 20

// absence is why status, history and unlock have nothing to show: no job of the app has
// a record. The first line is the mistake, the others help to find its cause.
// It is empty if there is a record, or if a record could not be read.
func absence(a *app.App, ctx context.Context, all []desk.Status) []string {
	asked := false
	for _, st := range all {
		if st.EveryReplica {
			continue
		}
		if st.Err != nil || st.Lease != "" {
			return nil
		}
		asked = true
	}
	if !asked {
		return nil
	}
	// What comes before the jobs makes its record first.
	if others, _ := locksOf(ctx, a); !others.Empty() {
		return nil
	}
	return []string{
		fmt.Sprintf("no records of app %q in %s", a.Settings.App, a.Place),
		instead(a, ctx),
		"replicas create the records when they start (" + a.Console.Name + " serve, or tick): if none of this app has started yet, there is nothing wrong",
	}
}

// instead says what the store has instead of the records of this app.
func instead(a *app.App, ctx context.Context) string {
	check := "check SOLOIST_APP, SOLOIST_CONTAINER and SOLOIST_STORAGE"
	s, ok := a.Store.(lister)
	if !ok {
		return check
	}
	apps, err := s.Apps(ctx)
	apps = slices.DeleteFunc(apps, func(app string) bool { return app == a.Settings.App }) // which has documents alone
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it does not exist: " + check
	case err != nil:
		return "what it has instead cannot be listed (" + format.Error(err) + "): " + check
	case len(apps) == 0:
		return "it has no records of any app: " + check
	}
	text := "it has records of the app " + listed(apps)
	if len(apps) > 1 {
		text = "it has records of the apps " + listed(apps)
	}
	if app := near.Name(a.Settings.App, apps); app != "" {
		return text + fmt.Sprintf(": did you mean SOLOIST_APP=%s?", format.Line(app))
	}
	return text + ": " + check
}

// listed names the first of many.
func listed(names []string) string {
	names = slices.Sorted(slices.Values(names))
	more := len(names) - maxListed
	text := format.Line(strings.Join(names[:min(len(names), maxListed)], ", "))
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// absent is the answer of a command that has nothing to show. Its body has the same lines.
func (f jsonFlag) absent(a *app.App, lines []string, body any) int {
	return f.answer(a, exitFail, body, func() {
		fmt.Fprintf(a.Console.Stderr, "%s: %s\n", a.Console.Name, lines[0])
		for _, text := range lines[1:] {
			fmt.Fprintf(a.Console.Stderr, "  %s\n", text)
		}
	})
}
