package schedule

import (
	"fmt"
	"strings"
)

// special reads an item of a day field that is no number and no range, such as L, 15W, friL and fri#3. It reports whether
// the item is of this kind, which only the cron dialect has.
func (p *fieldReader) special(k *kind, text string) (bool, error) {
	upper := strings.ToUpper(text)
	var marks string
	switch {
	case p.and:
		return false, nil
	case k.name == "day-of-month":
		marks = "LW"
	case k.week():
		marks = "L#"
	}
	if !strings.ContainsAny(upper, marks) {
		return false, nil
	}
	if base, _, stepped := strings.Cut(text, "/"); stepped {
		return true, fmt.Errorf("%q has no step, want %s alone", text, base)
	}
	if k.week() {
		return true, p.weekDay(k, text, upper)
	}
	return true, p.monthDay(upper)
}

// monthDay reads L, L-3, 15W, LW and L-3W.
func (p *fieldReader) monthDay(text string) error {
	digits, near := strings.CutSuffix(text, "W")
	digits, last := strings.CutPrefix(digits, "L")
	digits, minus := strings.CutPrefix(digits, "-")
	n, ok := 0, last && digits == "" && !minus
	if !ok && last == minus {
		n, ok = number(digits)
	}
	switch {
	case !ok && strings.Contains(digits, "-"):
		return fmt.Errorf("%q: L is no end of a range and W stands after one day; a-31 goes on to the last day", text)
	case !ok:
		return fmt.Errorf("%q is not a value, want 1-31, L, L-3, 15W, LW or L-3W", text)
	case last && n > 30:
		return fmt.Errorf("%s never fires, want L-1 to L-30", text)
	case last && minus && n == 0:
		return fmt.Errorf("%s is out of range, want L-1 to L-30, or L for the last day", text)
	case !last && (n < 1 || n > 31):
		return fmt.Errorf("%s never fires, want 1W to 31W", text)
	case last && near:
		p.dom.nearLast |= 1 << n
	case last:
		p.dom.last |= 1 << n
	default:
		p.dom.near |= 1 << n
	}
	return nil
}

// weekDay reads 5L, friL, 5#3 and fri#3.
func (p *fieldReader) weekDay(k *kind, text, upper string) error {
	name, nth, counted := strings.Cut(upper, "#")
	mark := "#"
	if !counted {
		name, mark = strings.TrimSuffix(upper, "L"), "L"
	}
	switch {
	case name == "":
		return fmt.Errorf("%q: %s stands after a day of the week, as in 5L or friL, 5#3 or fri#3", text, mark)
	case strings.Contains(name, "-"):
		return fmt.Errorf("%q: %s stands after one day of the week, not after a range", text, mark)
	}
	n, err := p.value(k, name)
	if err != nil {
		return err
	}
	if n %= 7; !counted {
		p.dow.last |= 1 << n
		return nil
	}
	i, ok := number(nth)
	if name = strings.ToLower(name); ok && i > 5 {
		return fmt.Errorf("%s never fires, want %s#1 to %s#5, or %sL for the last", text, name, name, name)
	}
	if !ok || i < 1 {
		return fmt.Errorf("%q is not a value, want %s#1 to %s#5, or %sL for the last", text, name, name, name)
	}
	p.dow.nth |= 1 << (7*(i-1) + n)
	return nil
}
