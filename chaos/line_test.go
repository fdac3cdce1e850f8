package chaos_test

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/chaos/line"
)

// A way is the line of a replica of a test.
type way struct {
	*line.Line
	t *testing.T
}

func newWay(t *testing.T, service string) *way {
	t.Helper()
	to, err := line.To(service)
	if err != nil {
		t.Fatal(err)
	}
	l, err := line.New(t.Name(), to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return &way{l, t}
}

func (w *way) up() {
	if err := w.Up(); err != nil {
		w.t.Error(err)
	}
}

func (w *way) spoil(stream, toxic, attribute string, value int) {
	if err := w.Spoil(stream, toxic, attribute, value); err != nil {
		w.t.Error(err)
	}
}

func (w *way) refuse(status int, after time.Duration) {
	w.Refuse(&line.Refusal{Status: status, After: after})
}
