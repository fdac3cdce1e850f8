// Package examine is what a store says to doctor of what lies between a process and its service.
package examine

import "context"

// A Check looks at one thing.
type Check struct {
	Name string
	Do   func(ctx context.Context) Finding
}

// A Finding is what a check came to. Neither text has secrets.
type Finding struct {
	Fails  bool   // the store cannot be used like this
	Text   string // what was found
	Advice string // what to do about it; empty: nothing
}
