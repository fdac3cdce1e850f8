package host

import (
	"context"

	"github.com/soloist-go/soloist/host/internal/functions"
)

// writeFunctions writes a directory that can be deployed to Azure Functions.
func writeFunctions(_ context.Context, p *Program, given arguments) int {
	a, code := p.openOr(mode{})
	if code != exitOK {
		return code
	}
	b, err := functions.NewBundle(a, functions.BundleOptions{Program: given.binary, OneTimer: given.tick, Warmup: given.warmup})
	if err == nil {
		err = b.Write(given.job)
	}
	if err != nil {
		a.Console.Complain(err)
		return exitFail
	}
	b.Print()
	return exitOK
}
