package host

import (
	"context"
	"errors"

	"github.com/alecthomas/kong"
)

// A grammar is what the program's arguments may be: one field for each command.
type grammar struct {
	ShowHelp bool `name:"help" short:"h" help:"show what the command does, and its flags"`

	Serve      serveCommand      `cmd:"" default:"1" help:"run all jobs and singletons, and answer HTTP, until told to stop (the default)"`
	Tick       tickCommand       `cmd:"" help:"run once what is due now, singletons left out; 1: a run failed"`
	Status     statusCommand     `cmd:"" help:"what the records tell: who runs what, last and next tick"`
	History    historyCommand    `cmd:"" help:"what became of the last ticks, by the records; 1: one cannot be read"`
	Next       nextCommand       `cmd:"" help:"explain schedules, or the one given: in words, and by the next ticks; it asks no storage"`
	Pause      pauseCommand      `cmd:"" help:"keep a job from starting, on all replicas, also on those that start later"`
	Resume     resumeCommand     `cmd:"" help:"end a pause, also of a job that has paused itself after failures"`
	Run        runCommand        `cmd:"" help:"run a job once by hand, on whichever replica is first, and wait for its outcome; 1: it did not succeed"`
	Cancel     cancelCommand     `cmd:"" help:"end the run of a job for good: its tick is not run again; 1: nothing runs"`
	Backfill   backfillCommand   `cmd:"" help:"run ticks of a job again that are over, such as those that were missed, one after the other; status shows how far it is"`
	StepDown   stepDownCommand   `cmd:"" help:"hand the run of a job or singleton over to another replica; 1: nothing runs"`
	Audit      auditCommand      `cmd:"" help:"who paused, resumed, ran, cancelled or handed over what, and when"`
	Unlock     unlockCommand     `cmd:"" help:"free a hung job: when its lease expires, or --now, while its holder may still work. It tells first who has the lease, and wants --yes; 0: done, or no replica has the lease"`
	Wake       wakeCommand       `cmd:"" help:"with SOLOIST_ALARM: have the platform start a replica now, such as after a deployment that has changed schedules"`
	Sweep      sweepCommand      `cmd:"" help:"remove locks that nobody has held for 30 days, or the time given; those of jobs stay"`
	Functions  functionsCommand  `cmd:"" help:"write a directory that can be deployed to Azure Functions, with this program or, as for another system, FILE; a timer for each job, or --tick, one for all"`
	Deployment deploymentCommand `cmd:"" name:"deploy-files" help:"write a directory for azd up, which deploys this program to Azure so that nothing is up between two ticks: as a Functions app, a container app or a job of Container Apps"`
	Validate   validateCommand   `cmd:"" help:"check jobs and settings without asking the storage; 2: mistakes"`
	Doctor     doctorCommand     `cmd:"" help:"try settings, network, credentials and storage one after the other, and say what to do; 1: something fails, 2: settings"`
	Completion completionCommand `cmd:"" help:"print a script that makes bash, zsh or fish complete commands, flags and jobs: source <(PROGRAM completion bash)"`
	Complete   completeCommand   `cmd:"" name:"__complete" hidden:""`
	Help       helpCommand       `cmd:"" help:"this text, or what one command does"`
}

// A command is what the program does for one field of the grammar. Its own
// fields are its arguments and flags.
type command interface {
	run(ctx context.Context, p *Program) int
}

// newParser reads the grammar. An error is a mistake in the grammar itself.
func newParser(p *Program) *kong.Kong {
	k, err := kong.New(&grammar{}, kong.Name(p.Name), kong.NoDefaultHelp(), kong.Writers(p.Stdout, p.Stderr), kong.Exit(func(int) {}))
	if err != nil {
		panic(err)
	}
	return k
}

// parse finds the command and reads what follows its name.
func parse(p *Program) (command, error) {
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
	return selected.Target.Addr().Interface().(command), nil
}

// helpOn explains the command whose flag --help is given. A command that is not
// named is the default, which is no question about serve.
func helpOn(selected *kong.Node, args []string) command {
	if selected == nil || selected.Name != args[0] {
		return &helpCommand{}
	}
	return &helpCommand{Command: selected.Name}
}
