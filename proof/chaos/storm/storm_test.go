//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/proctest"
)

func TestMain(m *testing.M) {
	if name, ok := proctest.Order(); ok {
		replica(name)
	}
	os.Exit(m.Run())
}

// TestMistakesFit: each mistake can be made. That a storm finds it is shown by -mistake.
func TestMistakesFit(t *testing.T) {
	for name, m := range mistakes {
		if _, err := proctest.Edited(m.edits...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStorm is a short one: it keeps the command alive. What is wrong fails it,
// not what is slow.
func TestStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("takes most of a minute: run it without -short")
	}
	var out strings.Builder
	o := options{replicas: 3, length: 18 * time.Second, seed: 1, lease: shortest, dir: t.TempDir(), store: overAzurite}
	ok, err := storms(context.Background(), o, &out)
	if errors.Is(err, azurite.ErrNoNode) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		t.Error("there are violations")
	}
}
