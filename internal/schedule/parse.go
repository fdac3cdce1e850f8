package schedule

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/soloist-go/soloist/internal/duration"
)

const maxText = 512 // bytes; also keeps every later step short

var descriptors = map[string]string{
	"@hourly":   "0 * * * *",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@weekly":   "0 0 * * 0",
	"@monthly":  "0 0 1 * *",
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
}

// manualText is the schedule of a job that runs when an operator or a program orders it, and never else.
const manualText = "@manual"

// blanks makes spaces of what separates words in files and variables. No byte changes its place.
var blanks = strings.NewReplacer("\t", " ", "\r", " ", "\n", " ")

// Parse reads cron text; empty text has no ticks, as @manual. An empty zone means UTC; the name is the job's, for H. An error
// says which part of the text is refused, at which byte, and what is allowed; the caller names the setting and the text.
func Parse(text, zone, name string) (*Schedule, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("%d bytes, allowed are %d", len(text), maxText)
	}
	text = blanks.Replace(text)
	s, err := parse(text, zone, name)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, advice(text, zone, name))
	}
	return s, nil
}

// head is what stands before the fields.
type head struct {
	zone string
	at   int // of the zone
	has  bool
	and  bool // the word ncrontab
}

// split takes the prefixes off; pos is where the fields begin.
func split(text string) (h head, pos int) {
	for {
		pos += skip(text[pos:])
		word, _, _ := strings.Cut(text[pos:], " ")
		key, value, set := strings.Cut(word, "=")
		switch {
		case set && !h.has && (key == "TZ" || key == "CRON_TZ"):
			h.has, h.zone, h.at = true, value, pos+len(key)+1
		case !h.and && strings.EqualFold(word, "ncrontab"):
			h.and = true
		default:
			return h, pos
		}
		pos += len(word)
	}
}

func skip(text string) int { return len(text) - len(strings.TrimLeft(text, " ")) }

// parse is Parse without advice.
func parse(text, zone, name string) (*Schedule, error) {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' {
			return nil, fmt.Errorf("byte %d: %#02x is not allowed, only printable ASCII and white space", i, c)
		}
	}
	h, pos := split(text)
	return h.parse(text, pos, zone, name)
}

// parse reads what follows the prefixes, from byte pos on.
func (h head) parse(text string, pos int, zone, name string) (*Schedule, error) {
	z, err := h.open(zone)
	if err != nil {
		return nil, err
	}
	s, rest := &Schedule{zone: z}, strings.TrimRight(text[pos:], " ")
	switch {
	case rest == "" && (h.has || h.and):
		return nil, fmt.Errorf("byte %d: nothing after the prefix, want 5 fields, 6 with seconds first, or @daily and the like", len(text))
	case rest == "":
		s.notes = []string{"no schedule: it runs when that is ordered, and never else; @manual says that it is meant"}
		fallthrough
	case rest == manualText:
		return s, nil
	}
	r := reader{name: name, and: h.and, zoned: zone != "" || h.has, given: zone}
	if strings.Contains(rest, ";") && !commanded(strings.Fields(rest), r) {
		return s, s.union(rest, pos, r)
	}
	p, err := one(rest, pos, z, r)
	s.parts = []*part{p}
	return s, err
}

// reader is what holds for all texts of a union.
type reader struct {
	name  string // the job's, for H
	and   bool   // the ncrontab dialect
	zoned bool   // a zone is given
	given string // the zone given with the text
}

// union reads several texts with semicolons between them, the first of which begins at byte pos.
func (s *Schedule) union(text string, pos int, r reader) error {
	begins := map[string]int{}
	for piece := range strings.SplitSeq(text, ";") {
		at := pos + skip(piece)
		if pos += len(piece) + 1; strings.TrimSpace(piece) == "" {
			return noText(at, len(s.parts) == 0)
		}
		p, err := member(s.zone, strings.TrimSpace(piece), at, r)
		if err != nil {
			return err
		}
		key := p.prefix(s.zone) + p.canon
		if first, ok := begins[key]; ok {
			return fmt.Errorf("byte %d: this text says the same as the text at byte %d, want it once", at, first)
		}
		begins[key] = at
		s.parts = append(s.parts, p)
	}
	s.notes = s.idle()
	return nil
}

func noText(at int, first bool) error {
	side := "after"
	if first {
		side = "before"
	}
	return fmt.Errorf("byte %d: no text %s ;, want one such as 30 2 * * * or @daily", at, side)
}

// member reads one text of a union, which may have a zone of its own.
func member(z *zone, text string, at int, r reader) (*part, error) {
	h, n := split(text)
	switch {
	case h.and:
		return nil, fmt.Errorf("byte %d: ncrontab counts for all texts, want it once, before the first", at)
	case !h.has:
		return one(text, at, z, r)
	case n == len(text):
		return nil, noText(at+n, false)
	}
	h.at += at
	z, err := h.open(r.given)
	if err != nil {
		return nil, err
	}
	r.zoned = true
	return one(text[n:], at+n, z, r)
}

// one reads a single text that begins at byte pos.
func one(text string, pos int, z *zone, r reader) (*part, error) {
	p := &part{zone: z, and: r.and}
	switch {
	case text[0] != '@':
		return p, p.fields(text, pos, r)
	case r.and:
		return nil, fmt.Errorf("byte %d: %s is not allowed in the ncrontab dialect, want 5 or 6 fields", pos, text)
	}
	return p, p.descriptor(text, pos, r)
}

// open settles the zone between the argument and the prefix.
func (h head) open(name string) (*zone, error) {
	if h.has && name != "" && name != h.zone {
		return nil, fmt.Errorf("byte %d: zone %q in the text, but the job's zone is %q; want one of them", h.at, h.zone, name)
	}
	where := "zone"
	if h.has {
		name, where = h.zone, fmt.Sprintf("byte %d: zone", h.at)
	} else if name == "" {
		name = "UTC"
	}
	z, err := openZone(name)
	if err != nil {
		return nil, fmt.Errorf("%s %.70q %w", where, name, err)
	}
	return z, nil
}

func (p *part) descriptor(text string, pos int, r reader) error {
	word, arg, _ := strings.Cut(text, " ")
	if fields, ok := descriptors[word]; ok {
		if arg != "" {
			return fmt.Errorf("byte %d: %q after %s, want nothing", pos+len(word), arg, word)
		}
		return p.fields(fields, pos, r)
	}
	if word != "@every" {
		return fmt.Errorf("byte %d: %s is unknown; want @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, @every 5m or @manual, which stands alone", pos, word)
	}
	pos += len(word) + skip(text[len(word):])
	arg = strings.TrimSpace(arg)
	d, err := duration.Parse(arg)
	if err != nil {
		return fmt.Errorf("byte %d: %q is not a duration; want @every with one such as 90s, 1h30m or 2d", pos, arg)
	}
	if d < time.Second || d%time.Second != 0 {
		return fmt.Errorf("byte %d: @every %s; want whole seconds, at least 1s", pos, arg)
	}
	p.every, p.canon = int64(d/time.Second), "@every "+d.String()
	if r.zoned && p.zone.name() != "UTC" {
		p.notes = append(p.notes, "@every counts from 1970-01-01 00:00 UTC: the zone "+p.zone.name()+" has no effect")
	}
	return nil
}

// fieldParser gives the bit sets of text that has been checked and resolved.
var fieldParser = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

const starBit = 1 << 63 // set by robfig/cron in a field that restricts nothing

// fields reads 5 or 6 fields that begin at byte pos of the text.
func (p *part) fields(text string, pos int, r reader) error {
	words := strings.Fields(text)
	if commanded(words, r) {
		at := strings.Index(text, " "+words[5]) + 1
		return fmt.Errorf("byte %d: %.80q follows the five fields, as in a crontab: want the fields alone, as Do is what the job does", pos+at, words[5])
	}
	if len(words) != 5 && len(words) != 6 {
		return fmt.Errorf("byte %d: %d fields, want 5 (minute hour day-of-month month day-of-week) or 6 (second first)", pos, len(words))
	}
	f := fieldReader{name: r.name, and: r.and}
	all := []field{{"0", "0"}}
	at, dom := 0, 0
	for i, word := range words {
		at += skip(text[at:])
		k := &kinds[i+6-len(words)]
		one, err := f.read(k, word)
		if err != nil {
			return fmt.Errorf("byte %d, %s field: %w", pos+at, k.name, err)
		}
		if k.name == "day-of-month" {
			dom = pos + at
		}
		all, at = append(all, one), at+len(word)
	}
	if err := p.set(all[len(all)-6:], &f); err != nil {
		return fmt.Errorf("byte %d: %w", pos, err)
	}
	p.notes = append(f.notes, p.warn(all[len(all)-6:], words)...)
	return p.fires(dom)
}

// commanded reports whether a command follows five fields.
func commanded(words []string, r reader) bool {
	if len(words) < 6 {
		return false
	}
	letters := len(words[5]) - len(strings.TrimLeft(words[5], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))
	if n, _ := kinds[5].meant(words[5][:letters]); n >= 0 || strings.ContainsAny(words[5][:1], "0123456789*?,-#;") {
		return false
	}
	p := fieldReader{name: r.name, and: r.and}
	if _, err := p.read(&kinds[5], words[5]); err == nil {
		return false
	}
	for i, word := range words[:5] {
		if _, err := p.read(&kinds[i+1], word); err != nil {
			return false
		}
	}
	return true
}

// set takes over what the six fields say.
func (p *part) set(all []field, r *fieldReader) error {
	canon, plain := make([]string, 6), make([]string, 6)
	for i, f := range all {
		canon[i], plain[i] = f.text, cmp.Or(f.plain, "*")
	}
	parsed, err := fieldParser.Parse(strings.Join(plain, " "))
	if err != nil {
		return err
	}
	spec := parsed.(*cron.SpecSchedule)
	p.clock = clock{spec.Second &^ starBit, spec.Minute &^ starBit, spec.Hour &^ starBit}
	p.anyDom, p.anyDow, p.fixed = all[3].text == "*", all[5].text == "*", !r.free
	dom, dow := r.dom, r.dow
	if all[3].plain != "" {
		dom.plain = spec.Dom &^ starBit
	}
	if all[5].plain != "" {
		dow.plain = spec.Dow &^ starBit
	}
	p.dates = newDates(dom, spec.Month&^starBit, dow, r.and || p.anyDom || p.anyDow)
	if canon[0] == "0" {
		canon = canon[1:]
	}
	p.canon = strings.Join(canon, " ")
	return nil
}

// fires refuses fields without a tick: by the calendar, or because all their readings are in gaps. It begins at a fixed
// year and asks no clock: an accepted text stays accepted.
func (p *part) fires(dom int) error {
	first := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for ; first.Year() < 2400; first = first.AddDate(0, 1, 0) { // the calendar repeats
		if p.dates.in(int64(first.Year()), int(first.Month()), first.Unix()/day) == 0 {
			continue
		}
		if _, ok := p.next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix()); !ok {
			return fmt.Errorf("never fires: from 2026 on, clocks in %s skip all of its times", p.zone.name())
		}
		return nil
	}
	return fmt.Errorf("byte %d: never fires: day-of-month names no day that the month field's months have", dom)
}
