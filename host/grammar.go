package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/near"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/schedule"
)

// A grammar is what the program's arguments may be: one field for each command.
type grammar struct {
	ShowHelp bool `name:"help" short:"h" help:"show what the command does, and its flags"`

	Serve      serveCommand      `cmd:"" default:"1" help:"run all jobs and singletons, and answer HTTP, until told to stop (the default)"`
	Tick       tickCommand       `cmd:"" help:"run once what is due now, singletons left out; 1: a run failed"`
	Status     statusCommand     `cmd:"" help:"what the records tell: who runs what, last and next tick"`
	History    historyCommand    `cmd:"" help:"what became of the last ticks, by the records; 1: one cannot be read"`
	Why        whyCommand        `cmd:"" help:"say in one sentence why a tick of a job did not run, or how it ended, or when the next is due, and what is not known"`
	Next       nextCommand       `cmd:"" help:"explain schedules, or the one given: in words, and by the next ticks; it asks no storage"`
	Pause      pauseCommand      `cmd:"" help:"keep a job from starting, on all replicas, also on those that start later"`
	Resume     orderCommand      `cmd:"" help:"end a pause, also of a job that has paused itself after failures"`
	Run        runCommand        `cmd:"" help:"run a job once by hand, on whichever replica is first, and wait for its outcome; 1: it did not succeed"`
	Cancel     orderCommand      `cmd:"" help:"end the run of a job for good: its tick is not run again; 1: nothing runs"`
	Backfill   backfillCommand   `cmd:"" help:"run ticks of a job again that are over, such as those that were missed, one after the other; status shows how far it is"`
	StepDown   orderCommand      `cmd:"" help:"hand the run of a job or singleton over to another replica; 1: nothing runs"`
	Audit      auditCommand      `cmd:"" help:"who paused, resumed, ran, cancelled or handed over what, and when"`
	Unlock     unlockCommand     `cmd:"" help:"free a hung job: when its lease expires, or --now, while its holder may still work. It tells first who has the lease, and wants --yes; 0: done, or no replica has the lease"`
	Wake       wakeCommand       `cmd:"" help:"with SOLOIST_ALARM: have the platform start a replica now, such as after a deployment that has changed schedules"`
	Sweep      sweepCommand      `cmd:"" help:"remove locks that nobody has held for 30 days, or the time given; those of jobs stay"`
	Functions  functionsCommand  `cmd:"" help:"write a directory that can be deployed to Azure Functions, with this program or, as for another system, FILE; a timer for each job, or --tick, one for all"`
	Deployment deploymentCommand `cmd:"" name:"deploy-files" help:"write a directory that deploys this program: with azd up to Azure, as a Functions app, a container app or a job of Container Apps, or with helm or kubectl to Kubernetes"`
	Validate   validateCommand   `cmd:"" help:"check jobs and settings without asking the storage; 2: mistakes, also a SOLOIST_ variable that is no setting"`
	Doctor     doctorCommand     `cmd:"" help:"try settings, network, credentials and storage one after the other, and say what to do; 1: something fails, 2: settings"`
	Completion completionCommand `cmd:"" help:"print a script that makes bash, zsh or fish complete commands, flags and jobs: source <(PROGRAM completion bash)"`
	Complete   completeCommand   `cmd:"" name:"__complete" hidden:""`
	Help       helpCommand       `cmd:"" help:"this text, or what one command does"`
}

// A command is what the program does for one field of the grammar. Its own
// fields are its arguments and flags. This one opens the program itself, or does without.
type command interface {
	run(ctx context.Context, p *Program) int
}

// An appCommand is a command that needs settings which are right.
type appCommand interface {
	mode() mode
	do(ctx context.Context, a *app.App) int
}

// newParser reads the grammar. An error is a mistake in the grammar itself.
func newParser(p *Program) *kong.Kong {
	var g grammar
	g.Resume.kind, g.Cancel.kind, g.StepDown.kind = record.OrderResume, record.OrderCancel, record.OrderStepDown
	k, err := kong.New(&g, kong.Name(p.Name), kong.NoDefaultHelp(), kong.Writers(p.Stdout, p.Stderr), kong.Exit(func(int) {}))
	if err != nil {
		panic(err)
	}
	return k
}

// parse finds the command and reads what follows its name.
func parse(p *Program) (any, error) {
	k := newParser(p)
	c, err := k.Parse(oneForm(k, p.Args))
	if wrong, ok := errors.AsType[*kong.ParseError](err); ok {
		c = wrong.Context
	}
	selected := c.Selected()
	for _, at := range c.Path {
		if at.Flag != nil && at.Flag.Name == "help" {
			return helpOn(selected, p.Args), nil // whatever else is wrong
		}
	}
	if err != nil {
		return nil, plain(k, selected, err.Error())
	}
	return selected.Target.Addr().Interface(), nil
}

// helpOn explains the command whose flag --help is given. A command that is not
// named is the default, which is no question about serve.
func helpOn(selected *kong.Node, args []string) command {
	if selected == nil || selected.Name != args[0] {
		return &helpCommand{}
	}
	return &helpCommand{Command: selected.Name}
}

// jsonFlag is embedded by each command that can answer in JSON.
type jsonFlag struct {
	JSON bool `name:"json" help:"answer with one JSON value"`
}

// mode is that of a command which asks the store, and runs nothing.
func (jsonFlag) mode() mode { return mode{} }

// answer prints the answer of a command, as JSON or in words, and returns the exit code, which is
// at least the one given.
func (f jsonFlag) answer(a *app.App, code int, body any, words func()) int {
	switch {
	case !f.JSON:
		words()
	case !a.Console.JSON(body):
		return max(code, exitFail)
	}
	return code
}

// A head is the beginning of most answers in JSON.
type head struct {
	App   string    `json:"app"`
	Store string    `json:"store"`
	Time  time.Time `json:"time"`
	Job   string    `json:"job,omitempty"` // empty: it is not about one job
}

func newHead(a *app.App, job string) head {
	return head{App: a.Settings.App, Store: a.Place, Time: format.UTC(a.Now()), Job: job}
}

// misused prints what is wrong with the arguments, each mistake in a line.
func misused(c app.Console, err error) int {
	for _, text := range format.Lines(err) {
		c.Tell("%s", text)
	}
	return exitUsage
}

// zoneFlag is embedded by each command that shows times. JSON has them in UTC. A command sets what its help says of the
// case that the flag is not given.
type zoneFlag struct {
	Zone *string `name:"tz" placeholder:"ZONE" help:"how to show times: utc, in a zone such as Europe/Berlin, in that of each job: job, or as spans: ago; not given: ${unset}"`
}

// A zoning says how times are shown.
type zoning struct {
	zone  *time.Location // nil: UTC
	ofJob bool           // in the zone of each job
	spans bool           // as spans from now
}

// read reads the flag. Not given, it is as UTC.
func (f zoneFlag) read() (z zoning, err error) {
	if f.Zone == nil {
		return z, nil
	}
	switch *f.Zone {
	case "utc":
		z.zone = time.UTC
	case "job":
		z.ofJob = true
	case "ago":
		z.spans = true
	default:
		if z.zone, err = schedule.LoadZone(*f.Zone); err != nil {
			err = fmt.Errorf("--tz %.70q %w%s", *f.Zone, err, app.DidYouMean("; ", *f.Zone, []string{"job", "ago"}))
		}
	}
	return z, err
}

// clock is the present, for times of a job or, with no name, of the program.
func (z zoning) clock(a *app.App, job string) format.Clock {
	if z.ofJob && job != "" {
		z.zone = app.ZoneOf(a, job)
	}
	return format.Clock{Now: a.Now(), Zone: z.zone, Spans: z.spans}
}

// readTime reads a flag that is a time, such as "audit: --since". Without the flag it is zero.
func readTime(flag string, text *string, read func(string) (time.Time, error)) (at time.Time, err error) {
	if text == nil {
		return at, nil
	}
	if at, err = read(*text); err != nil {
		err = fmt.Errorf("%s is %.70q: %w", flag, *text, err)
	}
	return at, err
}

// A number is the value of -n.
type number int

// maxOutcomes is the most that -n can ask for.
const maxOutcomes = 1000

func (n *number) UnmarshalText(text []byte) error {
	v, err := strconv.Atoi(string(text))
	if err != nil || v < 1 || v > maxOutcomes {
		return fmt.Errorf("%.70q is no number from 1 to %d", text, maxOutcomes)
	}
	*n = number(v)
	return nil
}

// oneForm writes the flags of a command as kong reads them: each by its long
// name after two dashes. As with package flag, one dash will do for any flag, two
// for one of a letter, and a value may follow after "=" in each case.
func oneForm(k *kong.Kong, args []string) []string {
	if len(args) == 0 || args[0] == "__complete" { // whose words belong to another call
		return args
	}
	long := map[string]string{"h": "help"}
	if c := commandNamed(k, args[0]); c != nil {
		for _, f := range c.Flags {
			long[string(f.Short)] = f.Name
		}
	}
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "--" {
			break
		}
		rest, dashed := strings.CutPrefix(arg, "-")
		name, value, given := strings.Cut(strings.TrimPrefix(rest, "-"), "=")
		if !dashed || name == "" {
			continue
		}
		if args[i] = "--" + cmp.Or(long[name], name); given {
			args[i] += "=" + value
		}
	}
	return args
}

// commandNamed returns the command of that name, or nil.
func commandNamed(k *kong.Kong, name string) *kong.Node {
	for _, c := range k.Model.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// plain says what is wrong with the arguments, and what is right: kong's own
// words name neither the command nor its flags.
func plain(k *kong.Kong, selected *kong.Node, text string) error {
	argument, unexpected := strings.CutPrefix(text, "unexpected argument ")
	argument, _, _ = strings.Cut(argument, ", did you mean ")
	flag, unknown := strings.CutPrefix(text, "unknown flag ")
	flag, _, _ = strings.Cut(flag, ", did you mean ")
	if utf8.RuneCountInString(flag) == len("--n") {
		flag = flag[1:]
	}
	switch {
	case selected == nil && unexpected:
		return &unknownCommand{argument, k.Model.Name, commandNames(k)}
	case selected == nil && unknown:
		return fmt.Errorf("unknown flag %s: flags follow the command", flag)
	case selected == nil:
		return errors.New(text)
	case unexpected:
		return fmt.Errorf("%s: unexpected argument %q", selected.Name, argument)
	case unknown:
		return fmt.Errorf("%s: unknown flag %s: %s", selected.Name, flag, flagsOf(selected, flag))
	case strings.HasPrefix(text, "expected ") && len(selected.Positional) > 0:
		return fmt.Errorf("%s: %s", selected.Name, selected.Positional[0].Tag.Get("missing"))
	}
	if name, missing := strings.CutSuffix(text, ` but got "EOL" (<EOL>)`); missing {
		name, _, _ = strings.Cut(name, ":")
		return fmt.Errorf("%s: %s needs a value", selected.Name, name)
	}
	return fmt.Errorf("%s: %s", selected.Name, strings.NewReplacer("<", "", ">", "").Replace(text))
}

// An unknownCommand says in one sentence which command was meant, or who lists them.
type unknownCommand struct {
	name, program string
	known         []string
}

func (e *unknownCommand) Error() string {
	meant := cmp.Or(app.DidYouMean(": ", e.name, e.known), ": "+e.program+" help lists the commands")
	return fmt.Sprintf("unknown command %.70q%s", e.name, meant)
}

// flagsOf says which flag of the command is meant, or which flags it has.
func flagsOf(c *kong.Node, wrong string) string {
	var names, written []string
	for _, f := range c.Flags {
		names, written = append(names, f.Name), append(written, dashed(f))
	}
	meant := near.Name(strings.TrimLeft(wrong, "-"), names)
	switch {
	case meant != "":
		return "did you mean --" + meant + "?"
	case names == nil:
		return "it takes none"
	}
	return "want " + strings.Join(written, ", ")
}

// dashed writes a flag that has a value in its shortest form, another in full.
func dashed(f *kong.Flag) string {
	if f.Short != 0 && !f.IsBool() {
		return "-" + string(f.Short)
	}
	return "--" + f.Name
}

// commandNames returns the names of the commands that help shows.
func commandNames(k *kong.Kong) (names []string) {
	for _, c := range k.Model.Children {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}
