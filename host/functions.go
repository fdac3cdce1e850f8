package host

import (
	"context"

	"github.com/soloist-go/soloist/host/internal/functions"
)

// functionsCommand writes a directory that can be deployed to Azure Functions.
type functionsCommand struct {
	Dir    string `arg:"" name:"DIR" missing:"into which directory?" help:"the directory: a new or empty one, or one that this command has written"`
	Binary string `placeholder:"FILE" help:"the program to deploy; not given: this one"`
	Plan   string `enum:"flex,consumption,other" default:"flex" help:"where the app runs: flex (Flex Consumption), consumption or other (Premium, Dedicated); on flex there is one timer for all jobs, and host.json has what the plan takes"`
	Tick   bool   `help:"one timer for all jobs on other plans, too"`
	Warmup bool   `help:"with a warm-up trigger"`
	jsonFlag
}

func (c *functionsCommand) run(_ context.Context, p *Program) int {
	a, code := p.openOr(mode{apart: true})
	if code != exitOK {
		return code
	}
	b, err := functions.NewBundle(a, functions.BundleOptions{Program: c.Binary, Plan: c.Plan, OneTimer: c.Tick, Warmup: c.Warmup})
	if err == nil {
		err = b.Write(c.Dir)
	}
	if err != nil {
		a.Console.Complain(err)
		return exitFail
	}
	if c.JSON {
		return printed(a.Console.JSON(b.Answer()))
	}
	b.Print()
	return exitOK
}
