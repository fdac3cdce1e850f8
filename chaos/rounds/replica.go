//go:build unix

package main

import (
	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/internal/proctest"
)

// replica is the whole life of a process that was started as one: the program
// that a user would write, but for the events.
func replica() {
	host.Main(soloist.Singleton{Name: "leader", Do: proctest.Lead(0)})
}
