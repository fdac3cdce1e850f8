// Package doctor tries settings, network, credentials and storage one after the
// other, and says what to do about what fails.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/functions"
	"github.com/soloist-go/soloist/host/internal/view"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/examine"
	"github.com/soloist-go/soloist/internal/schedule"
	"github.com/soloist-go/soloist/store"
)

// Whatever hangs, doctor ends within a minute: each check has stepTime, the check of a
// token more, since a cold one takes long, and all together doctorTime.
const (
	stepTime   = 5 * time.Second
	tokenTime  = 10 * time.Second
	doctorTime = 45 * time.Second
	tidyTime   = 5 * time.Second
)

// A Finding is what one check came to.
type Finding struct {
	Check  string `json:"check"`
	Result result `json:"result"`
	Text   string `json:"text"`
	Advice string `json:"advice,omitempty"` // what to do about it
}

// A result of a check: a warning is no failure.
type result string

const (
	passes result = "ok"
	warns  result = "warn"
	fails  result = "FAIL"
	skips  result = "skip" // nothing to learn after a failure, or in use by another doctor
)

func success(text string) Finding         { return Finding{Result: passes, Text: text} }
func warning(text, advice string) Finding { return Finding{Result: warns, Text: text, Advice: advice} }
func failure(text, advice string) Finding { return Finding{Result: fails, Text: text, Advice: advice} }

// A Diagnosis is doctor's report in JSON.
type Diagnosis struct {
	OK       bool      `json:"ok"`
	App      string    `json:"app"`
	Replica  string    `json:"replica"`
	Platform string    `json:"platform"`
	Store    string    `json:"store,omitempty"`
	Checks   []Finding `json:"checks"`
}

// A doctor looks at one thing after the other.
type doctor struct {
	app   *app.App
	ctx   context.Context
	tell  func(Finding)
	found []Finding
}

// examiner is a store that knows what lies between it and its service.
type examiner interface {
	Examine(name string, now func() time.Time) []examine.Check
}

// Examine does all checks, one after the other. settings is what is wrong with the settings. tell gets each finding at once, as
// the next check may take its time.
func Examine(ctx context.Context, a *app.App, settings error, tell func(Finding)) Diagnosis {
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	d := &doctor{app: a, ctx: ctx, tell: tell}
	d.checkSettings(settings)
	d.add(passes, "platform", fmt.Sprintf("%s; app %s, replica %s", platformName(), a.Settings.App, a.Scheduler.Replica), "")
	d.add(passes, "zones", schedule.ZoneData(d.app.Now()), "")
	d.checkFunctions()
	if a.Place == "" {
		d.skip("storage", "nothing is known of it")
	} else if wrong := misplaced(&a.Settings); wrong != nil {
		d.skip("storage", strings.Join(wrong, " and ")+" has to be right first: a check would test another place than the one that was meant")
	} else if d.checkStorage(); d.checkService() && checkScratch(d) {
		d.checkRecords(settings)
		d.checkReplicas()
		d.checkAlarm(settings)
	}
	return Diagnosis{OK: !d.failed(), App: a.Settings.App, Replica: a.Scheduler.Replica,
		Platform: platformName(), Store: a.Place, Checks: d.found}
}

func (d *doctor) add(r result, check, text, advice string) {
	f := Finding{Check: check, Result: r, Text: format.Line(text), Advice: format.Line(advice)}
	d.found = append(d.found, f)
	d.tell(f)
}

func (d *doctor) skip(check, why string) { d.add(skips, check, why, "") }

func (d *doctor) failed() bool {
	return slices.ContainsFunc(d.found, func(f Finding) bool { return f.Result == fails })
}

func (d *doctor) checkSettings(err error) {
	if err != nil {
		for _, text := range format.Lines(err) {
			d.add(fails, "settings", text, "")
		}
	}
	for _, text := range d.app.Strange {
		d.add(warns, "settings", text, "")
	}
	if err == nil {
		d.add(passes, "settings", fmt.Sprintf("%s; lease %s", format.Join(format.Plural(len(d.app.Scheduler.Jobs), "job"), format.Plural(len(d.app.Scheduler.Singletons), "singleton")), d.app.Settings.Lease), "")
		for _, line := range d.app.Beats() {
			d.add(passes, "lease", line, "")
		}
	}
}

// misplaced returns the settings of where the records are that are wrong. The
// defaults stand in for them.
func misplaced(s *app.Settings) (wrong []string) {
	for _, setting := range []struct{ name, used string }{{"SOLOIST_APP", s.App}, {"SOLOIST_CONTAINER", s.Container}} {
		if given := os.Getenv(setting.name); given != "" && given != setting.used {
			wrong = append(wrong, setting.name)
		}
	}
	return wrong
}

// platformName is where the program seems to run.
func platformName() string {
	switch {
	case os.Getenv("FUNCTIONS_CUSTOMHANDLER_PORT") != "":
		return "Azure Functions, as its custom handler"
	case os.Getenv("CONTAINER_APP_JOB_NAME") != "":
		return "Azure Container Apps, a job"
	case os.Getenv("CONTAINER_APP_NAME") != "":
		return "Azure Container Apps"
	case os.Getenv("KUBERNETES_SERVICE_HOST") != "":
		return "Kubernetes"
	case os.Getenv("WEBSITE_SITE_NAME") != "":
		return "Azure App Service or Functions, not as a custom handler"
	}
	return "none is recognised"
}

// checkFunctions looks at the Functions app in the program's directory, if there
// is one.
func (d *doctor) checkFunctions() {
	root := functions.AppRoot()
	if root == "" {
		return
	}
	all := functions.Drifts(d.app, root)
	for _, found := range all {
		r := warns
		if found.Late {
			r = fails
		}
		d.add(r, "functions", found.Words(), found.Do)
	}
	limits, err := functions.LimitsOf(d.app)
	if err != nil {
		functions.WarnOfGuess(d.app.Log, err)
	}
	late := functions.TooLong(d.app, limits)
	for _, text := range late {
		d.add(fails, "functions", text, "raise functionTimeout in host.json, or SOLOIST_FUNCTION_TIMEOUT if that is what says less; or lower the job's Timeout")
	}
	var long []string
	if functions.OnFlex() {
		long = functions.TooLongForFlex(d.app)
	}
	for _, text := range long {
		what, advice, _ := strings.Cut(text, ". ")
		d.add(warns, "functions", what, advice)
	}
	if len(all)+len(late)+len(long) == 0 {
		d.add(passes, "functions", "those in "+root+" are what the jobs need", "")
	}
}

func (d *doctor) checkStorage() {
	text, advice, r := d.app.Place, "", passes
	for _, note := range d.app.Notes {
		text = note
	}
	switch d.app.Store.(type) {
	case *local.Memory:
		r, advice = warns, "set SOLOIST_STORAGE where there is more than one replica, or records have to outlast a restart"
	case local.Dir:
		if app.InFunctions() || app.InContainerApps() {
			r, advice = warns, "set SOLOIST_STORAGE to a blob service, unless each replica mounts this directory"
		}
	}
	d.add(r, "storage", text, advice)
}

// checkService runs the store's own checks, as far as the first failure.
func (d *doctor) checkService() bool {
	backend, ok := d.app.Store.(examiner)
	if !ok {
		return true
	}
	for _, c := range backend.Examine(d.app.Settings.App+"/.doctor", d.app.Now) {
		limit := stepTime
		if c.Name == "credentials" {
			limit = tokenTime
		}
		if !d.step(c.Name, limit, func(ctx context.Context) Finding {
			switch f := c.Do(ctx); {
			case f.Fails:
				return failure(f.Text, f.Advice)
			case f.Advice != "":
				return warning(f.Text, f.Advice)
			default:
				return success(f.Text)
			}
		}) {
			d.skip("entries", "nothing to learn before that works")
			return false
		}
	}
	return true
}

// step gives a check its time. If the check takes longer, step returns without it: it may
// wait for what no context reaches, and the process ends soon.
func (d *doctor) step(check string, limit time.Duration, look func(ctx context.Context) Finding) bool {
	ctx, cancel := context.WithTimeout(d.ctx, limit)
	defer cancel()
	f, answered := within(ctx, look)
	if !answered {
		f.Result = fails
	}
	if f.Result == fails && ctx.Err() != nil {
		late := d.late(limit)
		f.Text = cmp.Or(strings.ReplaceAll(f.Text, context.DeadlineExceeded.Error(), late), late)
		f.Advice = cmp.Or(f.Advice, "look for what drops packets on the way: a firewall, a subnet's rules, a proxy")
	}
	if f.Text != "" { // else what was found is reported elsewhere
		d.add(f.Result, check, f.Text, f.Advice)
	}
	return f.Result != fails
}

// within returns what a call answers until a moment after the end of ctx, and whether it has.
func within[T any](ctx context.Context, do func(context.Context) T) (got T, answered bool) {
	answer := make(chan T, 1)
	go func() { answer <- do(ctx) }()
	select {
	case got = <-answer:
		return got, true
	case <-ctx.Done():
	}
	late := time.NewTimer(500 * time.Millisecond)
	defer late.Stop()
	select {
	case got = <-answer:
		return got, true
	case <-late.C:
		return got, false
	}
}

// late says whose time is over.
func (d *doctor) late(limit time.Duration) string {
	switch {
	case errors.Is(d.ctx.Err(), context.Canceled):
		return "told to stop"
	case d.ctx.Err() != nil:
		return fmt.Sprintf("not done within the %s that all checks have", doctorTime)
	}
	return fmt.Sprintf("no answer within %s", limit)
}

// checkRecords looks at the entry of each job.
func (d *doctor) checkRecords(wrong error) {
	if wrong != nil {
		d.skip("records", "the settings are not right yet")
		return
	}
	var all []desk.Status
	if d.step("records", stepTime, func(ctx context.Context) Finding {
		all = d.app.Statuses(ctx)
		return success("")
	}) {
		for _, st := range all {
			d.record(st)
		}
	}
}

// checkReplicas says what differs between the replicas and this environment. It has no finding if they cannot be read:
// the checks before this one report what is wrong with the store.
func (d *doctor) checkReplicas() {
	reader := d.app.Replicas()
	if reader == nil {
		return
	}
	var differs []string
	if d.step("replicas", stepTime, func(ctx context.Context) Finding {
		if r, err := reader.Read(ctx); err == nil {
			differs = view.FleetOf(d.app, r, nil).All(d.app)
		}
		return success("")
	}) {
		for _, text := range differs {
			d.add(warns, "replicas", text, "")
		}
	}
}

func (d *doctor) record(st desk.Status) {
	add := func(r result, text, advice string) { d.add(r, "record", st.Name+": "+text, advice) }
	switch {
	case st.EveryReplica:
		add(passes, "it runs on each replica and has none", "")
	case st.Err != nil && !view.Reached(st):
		text, advice := d.app.Explain(st.Err)
		add(fails, text, advice)
	case st.Err != nil:
		add(fails, st.Err.Error(), fmt.Sprintf("it is left alone and the job not run; if another program wrote %s/%s, choose another SOLOIST_APP", d.app.Settings.App, st.Name))
	case st.Checkpoint > store.MaxCheckpoint:
		add(fails, fmt.Sprintf("its checkpoint has %d bytes and at most %d are allowed: something other than this program wrote it, and a run that loads it fails", st.Checkpoint, store.MaxCheckpoint),
			"have the job save a new one, or empty the content; an upload without the metadata would erase the record")
	case st.Lease == "":
		add(passes, "none yet; the first replica makes it", "")
	default:
		v, r, advice := view.Of(d.app, st), passes, ""
		if v.Tone() != format.Normal {
			r, advice = warns, d.app.Console.Name+" history "+st.Name+" shows its last outcomes"
		}
		add(r, v.StateWords(format.Clock{Now: d.app.Now()}), advice)
	}
}
