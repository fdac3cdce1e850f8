package local_test

import (
	"context"
	"fmt"
	"os"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
)

// A test of a program needs no storage: a Memory is empty, and is gone after the test.
func ExampleMemory() {
	do := func(context.Context, *soloist.Run) error { return nil }
	s := &soloist.Scheduler{
		Store: &local.Memory{},
		Jobs:  []soloist.Job{{Name: "report", Schedule: "@daily", Do: do}},
	}
	fmt.Println(s.Validate())
	// Output: <nil>
}

// Two processes that have the same directory share its entries.
func ExampleDir() {
	path, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(path)
	one, other := local.Dir{Path: path}, local.Dir{Path: path}
	if _, err := one.Create(context.Background(), "app/job", []byte("record")); err != nil {
		fmt.Println(err)
	}
	e, err := other.Read(context.Background(), "app/job")
	fmt.Println(string(e.Record), e.State, err)
	// Output: record available <nil>
}
