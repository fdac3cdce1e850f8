package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// Whatever hangs, doctor ends within a minute: checks have stepTime, that of a
// token more, since a cold one takes long, and all together doctorTime.
const (
	stepTime   = 5 * time.Second
	tokenTime  = 10 * time.Second
	doctorTime = 45 * time.Second
	tidyTime   = 5 * time.Second
)

// A finding is what one check came to.
type finding struct {
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

// A diagnosis is what doctor tells in JSON.
type diagnosis struct {
	OK       bool      `json:"ok"`
	App      string    `json:"app"`
	Replica  string    `json:"replica"`
	Platform string    `json:"platform"`
	Store    string    `json:"store,omitempty"`
	Checks   []finding `json:"checks"`
}

// A doctor looks at one thing after the other.
type doctor struct {
	*app
	ctx   context.Context
	quiet bool
	found []finding
}

// examiner is a store that knows what lies between it and its service.
type examiner interface {
	Examine(name string, now func() time.Time) []azure.Check
}

// explainer is a store that knows what to do about its errors.
type explainer interface {
	Explain(err error) (text, advice string)
}

// diagnose reads the settings itself, since they are its first patient.
func diagnose(ctx context.Context, bare *app, given arguments) int {
	a, err := bare.open(&command{name: "doctor"})
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	d := &doctor{app: a, ctx: ctx, quiet: given.json}
	wrong := d.checkSettings(err)
	d.add(passes, "platform", fmt.Sprintf("%s; app %s, replica %s", platformName(), a.App, a.sched.Replica), "")
	d.checkFunctions()
	if a.store == "" {
		d.skip("storage", "nothing is known of it")
	} else if wrong := a.misplaced(); wrong != nil {
		d.skip("storage", strings.Join(wrong, " and ")+" has to be right first: a check would test another place than the one that was meant")
	} else if d.checkStorage(); d.checkService() && d.checkScratch() {
		d.checkRecords(err)
	}
	code := exitOK
	switch {
	case wrong:
		code = exitUsage
	case d.failed():
		code = exitFail
	}
	if !given.json {
		return code
	}
	return max(code, a.printJSON(diagnosis{OK: code == exitOK, App: a.App, Replica: a.sched.Replica,
		Platform: platformName(), Store: a.store, Checks: d.found}))
}

// add tells a finding at once: the next check may take its time.
func (d *doctor) add(r result, check, text, advice string) {
	f := finding{Check: check, Result: r, Text: line(text), Advice: line(advice)}
	d.found = append(d.found, f)
	if d.quiet {
		return
	}
	if f.Advice != "" {
		f.Text += ": " + f.Advice
	}
	fmt.Fprintf(d.Stdout, "%-4s  %-11s  %s\n", f.Result, f.Check, f.Text)
}

func (d *doctor) skip(check, why string) { d.add(skips, check, why, "") }

func (d *doctor) failed() bool {
	for _, f := range d.found {
		if f.Result == fails {
			return true
		}
	}
	return false
}

func (d *doctor) checkSettings(err error) (wrong bool) {
	if err != nil {
		for _, text := range lines(err) {
			d.add(fails, "settings", text, "")
		}
	}
	for _, text := range d.strange {
		d.add(warns, "settings", text, "")
	}
	if err == nil {
		d.add(passes, "settings", fmt.Sprintf("%s; lease %s", join(plural(len(d.sched.Jobs), "job"), plural(len(d.sched.Singletons), "singleton")), d.Lease), "")
	}
	return err != nil
}

// misplaced returns the settings of where the records are that are wrong. The
// defaults stand in for them.
func (a *app) misplaced() (wrong []string) {
	for _, setting := range []struct{ name, used string }{{"SOLOIST_APP", a.App}, {"SOLOIST_CONTAINER", a.Container}} {
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

// checkFunctions looks at the Functions app that lies beside the program, if one
// does.
func (d *doctor) checkFunctions() {
	root := appRoot()
	if root == "" {
		return
	}
	all := d.drifts(root)
	for _, found := range all {
		r := warns
		if found.late {
			r = fails
		}
		d.add(r, "functions", found.words(), found.do)
	}
	late := d.tooLong(d.invocationLimits())
	for _, text := range late {
		d.add(fails, "functions", text, "raise functionTimeout in host.json, or SOLOIST_FUNCTION_TIMEOUT if that is what says less; or lower the job's Timeout")
	}
	if len(all)+len(late) == 0 {
		d.add(passes, "functions", "those in "+root+" are what the jobs need", "")
	}
}

func (d *doctor) checkStorage() {
	text, advice, r := d.store, "", passes
	for _, note := range d.notes {
		text = note
	}
	switch d.sched.Store.(type) {
	case *local.Memory:
		r, advice = warns, "set SOLOIST_STORAGE where there is more than one replica, or records have to outlast a restart"
	case local.Dir:
		if inFunctions() || inContainerApps() {
			r, advice = warns, "set SOLOIST_STORAGE to a blob service, unless each replica mounts this directory"
		}
	}
	d.add(r, "storage", text, advice)
}

// checkService runs the store's own checks, as far as the first failure.
func (d *doctor) checkService() bool {
	backend, ok := d.sched.Store.(examiner)
	if !ok {
		return true
	}
	for _, c := range backend.Examine(d.App+"/.doctor", d.Now) {
		limit := stepTime
		if c.Name == "credentials" {
			limit = tokenTime
		}
		ok := d.step(c.Name, limit, func(ctx context.Context) finding {
			f := c.Do(ctx)
			r := passes
			switch {
			case f.Fails:
				r = fails
			case f.Advice != "":
				r = warns
			}
			return finding{Result: r, Text: f.Text, Advice: f.Advice}
		})
		if !ok {
			d.skip("entries", "nothing to learn before that works")
			return false
		}
	}
	return true
}

// step gives a check its time. One that overstays it is left behind: it may
// wait for what no context reaches, and the process ends soon.
func (d *doctor) step(check string, limit time.Duration, look func(ctx context.Context) finding) bool {
	if d.hurry > 0 {
		limit = min(limit, d.hurry)
	}
	ctx, cancel := context.WithTimeout(d.ctx, limit)
	defer cancel()
	answer := make(chan finding, 1)
	go func() { answer <- look(ctx) }()
	f := finding{Result: fails}
	select {
	case f = <-answer:
	case <-ctx.Done():
		late := time.NewTimer(500 * time.Millisecond)
		defer late.Stop()
		select {
		case f = <-answer:
		case <-late.C:
		}
	}
	if f.Result == fails && ctx.Err() != nil {
		late := d.late(limit)
		f.Text = cmp.Or(strings.ReplaceAll(f.Text, context.DeadlineExceeded.Error(), late), late)
		f.Advice = cmp.Or(f.Advice, "look for what drops packets on the way: a firewall, a subnet's rules, a proxy")
	}
	if f.Text != "" { // else what was found is told otherwise
		d.add(f.Result, check, f.Text, f.Advice)
	}
	return f.Result != fails
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

// explain asks the store what its error is about.
func (a *app) explain(err error) (text, advice string) {
	if s, ok := a.sched.Store.(explainer); ok {
		return s.Explain(err)
	}
	return err.Error(), ""
}

// checkRecords looks at the entry of each job.
func (d *doctor) checkRecords(wrong error) {
	if wrong != nil {
		d.skip("records", "the settings are not right yet")
		return
	}
	var all []soloist.JobStatus
	ok := d.step("records", stepTime, func(ctx context.Context) finding {
		found, err := d.sched.Status(ctx)
		if err != nil {
			return finding{Result: fails, Text: err.Error()}
		}
		all = found
		return finding{Result: passes}
	})
	for i := 0; ok && i < len(all); i++ {
		d.record(all[i])
	}
}

func (d *doctor) record(st soloist.JobStatus) {
	switch {
	case st.EveryReplica:
		d.add(passes, "record", st.Name+": it runs on each replica and has none", "")
	case st.Err != nil && !reached(st):
		text, advice := d.explain(st.Err)
		d.add(fails, "record", st.Name+": "+text, advice)
	case st.Err != nil:
		d.add(fails, "record", st.Name+": "+st.Err.Error(), fmt.Sprintf("it is left alone and the job not run; if another program wrote %s/%s, choose another SOLOIST_APP", d.App, st.Name))
	case st.Checkpoint > store.MaxCheckpoint:
		d.add(fails, "record", fmt.Sprintf("%s: its checkpoint has %d bytes and at most %d are allowed: something other than this program wrote it, and a run that loads it fails", st.Name, st.Checkpoint, store.MaxCheckpoint),
			"have the job save a new one, or empty the content; an upload without the metadata would erase the record")
	case st.Lease == "":
		d.add(passes, "record", st.Name+": none yet; the first replica makes it", "")
	default:
		v := d.view(st)
		d.add(passes, "record", st.Name+": "+v.StateWords(d.Now()), "")
	}
}
