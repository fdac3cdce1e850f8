package app

import (
	"errors"
	"strings"
	"testing"

	"github.com/soloist-go/soloist"
)

// The reasons follow the word for the health: "overrun: overrun: ..." says it twice.
func TestReasonsDoNotRepeatTheHealth(t *testing.T) {
	wrong := errors.New("secret")
	got := reasons(soloist.Health{Overrun: map[string]error{"slow": wrong}, Stuck: []string{"hung"}, Broken: map[string]error{"bad": wrong}, Storage: wrong, Events: wrong}, wrong)
	if len(got) != 6 {
		t.Errorf("got %q, want six reasons", got)
	}
	for _, text := range got {
		for _, word := range []string{"overrun", "stuck", "degraded", "secret"} {
			if strings.Contains(text, word) {
				t.Errorf("got %q, which has %q in it", text, word)
			}
		}
	}
}
