package line

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"
)

// A Fault is what may happen to a line, until [Line.Heal]. x, from 0 to 1, says
// how bad it is.
type Fault func(l *Line, x float64) error

// Partition has nothing get through: connections are refused.
func Partition(l *Line, _ float64) error {
	l.Down()
	return nil
}

// HalfOpen has the connections stand, and nothing come out of them.
func HalfOpen(l *Line, x float64) error {
	if err := Toxic("upstream", "timeout", "timeout", 0, 0)(l, x); err != nil {
		return err
	}
	return Toxic("downstream", "timeout", "timeout", 0, 0)(l, x)
}

// Toxic is a toxic (https://github.com/Shopify/toxiproxy#toxics) for what the
// client sends (upstream) or gets (downstream). It has a value between two, with
// the small ones as likely as the large.
func Toxic(stream, name, attribute string, least, most float64) Fault {
	return func(l *Line, x float64) error {
		value := least
		if least > 0 {
			value *= math.Pow(most/least, x)
		}
		text := fmt.Sprintf(`{"type": %q, "stream": %q, "attributes": {%q: %d}}`, name, stream, attribute, int(value))
		if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		return nil
	}
}

// Throttle has some requests refused, at the worst all.
func Throttle(status int, after time.Duration) Fault {
	return func(l *Line, x float64) error {
		l.Refuse(&Refusal{Status: status, After: time.Duration(x * float64(after)), Share: 0.3 + 0.7*x})
		return nil
	}
}

// Heal takes from a line whatever it suffers from.
func (l *Line) Heal() error {
	l.proxy.Toxics.ResetToxics(context.Background())
	l.Refuse(nil)
	l.Lose(0)
	return l.Up()
}
