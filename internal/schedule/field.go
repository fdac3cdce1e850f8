package schedule

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// item is a range with a step; a step of 0 means that none is written.
type item struct{ lo, hi, step int }

// fieldReader resolves fields: H, names, Sunday as 7. What it returns, robfig/cron can only accept.
type fieldReader struct {
	name  string // the job's
	and   bool   // the ncrontab dialect
	free  bool   // a clock field had * or /
	dom   monthDays
	dow   weekDays
	notes []string
}

// A field is what has been read of one.
type field struct {
	text  string // canonical: sorted values, or the items as written if there is a * or a step; then L, W and #
	plain string // the same without L, W and #, as robfig/cron reads it; empty: there is nothing else
}

// read resolves one field.
func (p *fieldReader) read(k *kind, word string) (field, error) {
	var set uint64
	var texts []string
	var star, step bool
	for text := range strings.SplitSeq(word, ",") {
		if special, err := p.special(k, text); err != nil {
			return field{}, err
		} else if special {
			continue
		}
		it, err := p.item(k, text)
		if err != nil {
			return field{}, err
		}
		star = star || it.step <= 1 && (text[0] == '*' || text[0] == '?')
		step = step || it.step > 0
		for n := it.lo; n <= it.hi; n += max(it.step, 1) {
			set |= 1 << (n % (k.max + 1)) // only 7, for Sunday, is above max
		}
		texts = append(texts, it.text(k))
		p.note(k, text, it)
	}
	p.free = p.free || k.clock() && (star || step)
	plain := runs(set)
	switch {
	case star:
		return field{"*", "*"}, nil
	case step && !(k.week() && strings.Contains(word, "7")):
		plain = strings.Join(texts, ",")
	}
	return p.with(k, plain), nil
}

// with adds the special items of a day field.
func (p *fieldReader) with(k *kind, plain string) field {
	var texts []string
	if plain != "" {
		texts = append(texts, plain)
	}
	switch {
	case k.week():
		texts = append(texts, p.dow.special()...)
	case k.day():
		texts = append(texts, p.dom.special()...)
	}
	return field{strings.Join(texts, ","), plain}
}

// item reads one element of a field's list.
func (p *fieldReader) item(k *kind, text string) (it item, err error) {
	base, step, stepped := strings.Cut(text, "/")
	if stepped {
		if it.step, err = p.step(k, step); err != nil {
			return it, err
		}
	}
	switch {
	case base == "":
		return it, fmt.Errorf("an item is empty, want %s, * or a range", k.allowed(p.and))
	case base == "*", base == "?" && !p.and && k.day():
		it.lo, it.hi = k.min, k.max
		return it, nil
	case base == "?":
		return it, errors.New("? stands for * only in a day field of the cron dialect")
	case base[0] == 'H':
		return p.hash(k, base, it.step)
	}
	return p.span(k, base, it)
}

// span reads a value or a range; a value with a step goes on to the end of the field.
func (p *fieldReader) span(k *kind, base string, it item) (item, error) {
	low, high, ranged := strings.Cut(base, "-")
	var err error
	if it.lo, err = p.value(k, low); err != nil {
		return it, err
	}
	switch {
	case ranged:
		it.hi, err = p.value(k, high)
	case it.step > 0:
		it.hi = max(k.max, it.lo)
	default:
		it.hi = it.lo
	}
	if err == nil && it.lo > it.hi {
		return p.reversed(k, base, it)
	}
	return it, err
}

func (p *fieldReader) reversed(k *kind, base string, it item) (item, error) {
	if p.and {
		it.lo, it.hi = it.hi, it.lo
		p.notes = append(p.notes, fmt.Sprintf("%s field: the ncrontab dialect reads %s as %d-%d, not around the end", k.name, base, it.lo, it.hi))
		return it, nil
	}
	return it, fmt.Errorf("range %s ends before it begins", base)
}

func (p *fieldReader) step(k *kind, text string) (int, error) {
	n, ok := number(text)
	if !ok || n < 1 || n > k.max-k.min {
		return 0, fmt.Errorf("step %q, want 1-%d", text, k.max-k.min)
	}
	return n, nil
}

// value reads a number or a name.
func (p *fieldReader) value(k *kind, text string) (int, error) {
	if n, ok := number(text); ok {
		if n >= k.min && n <= k.max || n == 7 && k.week() && !p.and {
			return n, nil
		}
		return 0, fmt.Errorf("%s is out of range, want %s", text, k.allowed(p.and))
	}
	for i, name := range k.names {
		if text == "" || !p.and && len(text) != 3 {
			break
		}
		if strings.HasPrefix(name, strings.ToLower(text)) {
			return k.min + i, nil
		}
	}
	return 0, fmt.Errorf("%q is not a value, want %s", text, k.allowed(p.and))
}

// hash resolves H, H(a-b) and both with a step.
func (p *fieldReader) hash(k *kind, base string, step int) (item, error) {
	it := item{lo: k.min, hi: k.max, step: step}
	if k.name == "day-of-month" {
		it.hi = 28 // every month has it
	}
	if base != "H" {
		inner, ok := strings.CutPrefix(base, "H(")
		inner, closed := strings.CutSuffix(inner, ")")
		if !ok || !closed || !strings.Contains(inner, "-") {
			return it, fmt.Errorf("%q, want H, H(a-b), H/n or H(a-b)/n", base)
		}
		var err error
		if it, err = p.span(k, inner, it); err != nil {
			return it, err
		}
	}
	h := fnv.New64a()
	h.Write([]byte(p.name + "\x00" + k.name)) // never fails
	width := it.hi - it.lo + 1
	if step > 0 {
		width = min(width, step)
	}
	it.lo += int(h.Sum64() % uint64(width))
	if step == 0 {
		it.hi = it.lo
	}
	return it, nil
}

// note warns about one item of a field.
func (p *fieldReader) note(k *kind, text string, it item) {
	switch n := k.max - k.min + 1; {
	case it.step == 0 || strings.HasPrefix(text, "*/1") && it.step == 1:
	case it.lo+it.step > it.hi:
		p.notes = append(p.notes, fmt.Sprintf("%s field: the step in %s is longer than its range: %d alone matches", k.name, text, it.lo))
	case text[0] == '*' && n%it.step != 0:
		last := it.lo + (it.hi-it.lo)/it.step*it.step
		p.notes = append(p.notes, fmt.Sprintf("%s field: %s is uneven: it begins again at %d, the last before is %d", k.name, text, it.lo, last))
	}
}

func (i item) text(k *kind) string {
	if i.step > 1 && i.lo == k.min && i.hi == k.max {
		return "*/" + strconv.Itoa(i.step)
	}
	s := strconv.Itoa(i.lo)
	if i.hi != i.lo || i.step > 0 {
		s += "-" + strconv.Itoa(i.hi)
	}
	if i.step > 0 {
		s += "/" + strconv.Itoa(i.step)
	}
	return s
}

// number reads up to four digits, and nothing else: no sign, as strconv would take.
func number(text string) (int, bool) {
	if text == "" || len(text) > 4 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// runs writes a set of values as cron text.
func runs(set uint64) string {
	var texts []string
	for set != 0 {
		lo := low(set)
		hi := lo + low(^(set >> lo)) - 1
		texts = append(texts, item{lo: lo, hi: hi}.text(nil))
		set &^= 2<<hi - 1
	}
	return strings.Join(texts, ",")
}
