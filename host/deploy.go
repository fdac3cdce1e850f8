package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/azd"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/functions"
)

// deploymentCommand writes what the Azure Developer CLI, Helm or kubectl deploys.
type deploymentCommand struct {
	Kind      string `arg:"" name:"KIND" enum:"functions,containerapp,containerapp-job,containerapp-always-on,kubernetes" missing:"for what (functions, containerapp, containerapp-job, containerapp-always-on or kubernetes), and into which directory?" help:"functions, containerapp or containerapp-job, which an alarm wakes up for each tick; containerapp-always-on or kubernetes, where two replicas are up all the time"`
	Dir       string `arg:"" name:"DIR" help:"the directory, within the module of the program"`
	Package   string `placeholder:"PATH" help:"the main package from the root of the module, such as ./jobs; not given: this program's"`
	Image     string `placeholder:"IMAGE" help:"for kubernetes: the image that pods run, with its tag"`
	Overwrite bool   `help:"write also what differs from a file that is there"`
	jsonFlag
}

// A deployment is what the command deploy-files prints in JSON.
type deployment struct {
	Kind      string   `json:"kind"`
	Directory string   `json:"directory"`
	App       string   `json:"app"`
	Queue     string   `json:"queue"`   // of the alarm; empty: replicas stay up
	Written   []string `json:"written"` // those that were not there as they are
	Warnings  []string `json:"warnings"`
}

func (*deploymentCommand) mode() mode { return mode{apart: true} }

func (c *deploymentCommand) do(_ context.Context, a *app.App) int {
	d, err := c.write(a)
	if err != nil {
		a.Console.Complain(err)
		return exitFail
	}
	return c.answer(a, exitOK, d, func() { d.print(a) })
}

func (d *deployment) print(a *app.App) {
	if len(d.Written) == 0 {
		fmt.Fprintf(a.Console.Stdout, "all files are in %s as they should be\n", format.Escape(d.Directory))
	} else {
		fmt.Fprintf(a.Console.Stdout, "%s in %s\n\n", format.Plural(len(d.Written), "file"), format.Escape(d.Directory))
	}
	for _, name := range d.Written {
		fmt.Fprintf(a.Console.Stdout, "  %s\n", format.Escape(name))
	}
	fmt.Fprintf(a.Console.Stdout, "\nthe commands are in %s\n", format.Escape(filepath.Join(d.Directory, "README.md")))
	for _, text := range d.Warnings {
		a.Console.Tell("%s", text)
	}
}

func (c *deploymentCommand) write(a *app.App) (*deployment, error) {
	program, release := builtFrom()
	var longest time.Duration
	for _, j := range a.Scheduler.Jobs {
		longest = max(longest, j.Timeout)
	}
	plan := azd.Program{Kind: c.Kind, App: a.Settings.App, Queue: a.Settings.AlarmQueue,
		Package: cmp.Or(c.Package, program), Go: release, Timeout: azd.ReplicaTime(longest),
		Image: c.Image}
	if plan.StaysUp() {
		plan.Queue = ""
	}
	if plan.Package == "" {
		return nil, errors.New("which package this program was built from cannot be told: name it with --package, as from the root of its module")
	}
	if err := plan.Locate(c.Dir); err != nil {
		return nil, err
	}
	files, err := plan.Files()
	if err != nil {
		return nil, err
	}
	written, err := azd.Write(c.Dir, files, c.Overwrite)
	if err != nil {
		return nil, err
	}
	return &deployment{c.Kind, c.Dir, plan.App, plan.Queue, append([]string{}, written...), c.warnings(a, plan.StaysUp())}, nil
}

// warnings are about what does not work where nothing is up between two ticks,
// or is not part of the files.
func (c *deploymentCommand) warnings(a *app.App, staysUp bool) []string {
	all := []string{}
	if staysUp {
		return all
	}
	for _, s := range a.Scheduler.Singletons {
		all = append(all, "singleton "+s.Name+" does not run there: nothing is up between two ticks. The kinds containerapp-always-on and kubernetes keep replicas up")
	}
	for _, j := range a.Scheduler.Jobs {
		if j.EveryReplica {
			all = append(all, "job "+j.Name+" runs on each replica: its ticks wake nobody up")
		}
	}
	if c.Kind == azd.Functions {
		all = append(all, functions.TooLongForFlex(a)...)
	}
	if jobs := functions.Frequent(a); jobs != nil {
		all = append(all, format.Join(jobs...)+": ticks are nearer than "+a.Settings.Patience().String()+", so something is up all the time and the alarm saves nothing; docs/costs.md says what to take")
	}
	return all
}

// builtFrom returns the directory of the main package in its module, empty where
// the binary does not say, and the release of Go, such as 1.26.
func builtFrom() (dir, release string) {
	release = "1.26"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", release
	}
	if parts := strings.SplitN(strings.TrimPrefix(info.GoVersion, "go"), ".", 3); len(parts) > 1 {
		release = parts[0] + "." + parts[1]
	}
	below, within := strings.CutPrefix(info.Path, info.Main.Path)
	if !within || info.Main.Path == "" || strings.HasSuffix(info.Path, ".test") {
		return "", release
	}
	return "." + below, release
}

// functionsCommand writes a directory that can be deployed to Azure Functions.
type functionsCommand struct {
	Dir    string `arg:"" name:"DIR" missing:"into which directory?" help:"the directory: a new or empty one, or one that this command has written"`
	Binary string `placeholder:"FILE" help:"the program to deploy; not given: this one"`
	Plan   string `enum:"flex,consumption,other" default:"flex" help:"where the app runs: flex (Flex Consumption), consumption or other (Premium, Dedicated); on flex there is one timer for all jobs, and host.json has what the plan takes"`
	Tick   bool   `help:"one timer for all jobs on other plans, too"`
	Warmup bool   `help:"with a warm-up trigger"`
	jsonFlag
}

func (*functionsCommand) mode() mode { return mode{apart: true} }

func (c *functionsCommand) do(_ context.Context, a *app.App) int {
	b, err := functions.NewBundle(a, functions.BundleOptions{Program: c.Binary, Plan: c.Plan, OneTimer: c.Tick, Warmup: c.Warmup})
	if err == nil {
		err = b.Write(c.Dir)
	}
	if err != nil {
		a.Console.Complain(err)
		return exitFail
	}
	return c.answer(a, exitOK, b.Answer(), b.Print)
}
