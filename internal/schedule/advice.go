package schedule

import (
	"slices"
	"strconv"
	"strings"
)

// advice completes the error of a refused text: the text to write in its place. It is empty where more than one thing may be
// meant. The other dialect is advised only if it reads the same ticks out of the text.
func advice(text, zone, name string) string {
	h, pos := split(text)
	mended := strings.Join(append(strings.Fields(text[:pos]), h.mendAll(text[pos:])), " ")
	if _, err := parse(mended, zone, name); err == nil {
		return "; write " + mended
	}
	if !h.and {
		return "" // what ncrontab alone accepts is mended, or ambiguous
	}
	h.and = false
	if s, err := h.parse(text, pos, zone, name); err == nil && !slices.ContainsFunc(s.parts, (*part).bothDays) {
		return "; valid in the cron dialect only: leave out the word ncrontab"
	}
	return ""
}

// bothDays reports whether both day fields are set, which the dialects read differently.
func (p *part) bothDays() bool { return p.every == 0 && !p.anyDom && !p.anyDow }

// mendAll mends what follows the prefixes.
func (h head) mendAll(text string) string {
	all := strings.Split(text, ";")
	for i, one := range all {
		words := strings.Fields(one)
		if len(words) == 1 && h.and && descriptors[words[0]] != "" {
			words[0] = descriptors[words[0]]
		}
		for k, word := range words {
			if at := k + 6 - len(words); at >= 0 && len(words) >= 5 {
				words[k] = h.mend(&kinds[at], word)
			}
		}
		all[i] = strings.Join(words, " ")
	}
	return strings.Join(all, " ; ")
}

// mend mends the items of a field.
func (h head) mend(k *kind, word string) string {
	items := strings.Split(word, ",")
	for i, item := range items {
		switch base, step, stepped := strings.Cut(item, "/"); {
		case base == "?" && h.and && k.day():
			items[i] = "*" + item[1:]
		case stepped && !strings.Contains(base, "-"):
		default:
			items[i] = h.mendRange(k, item, base, step)
		}
	}
	return strings.Join(items, ",")
}

// mendRange writes a value, or a range that may go around the end of its field, as both dialects read it.
func (h head) mendRange(k *kind, item, base, step string) string {
	low, high, ranged := strings.Cut(base, "-")
	if !ranged {
		high = low
	}
	lo, named := k.meant(low)
	hi, _ := k.meant(high)
	by, ok := 1, true
	if step != "" {
		by, ok = number(step)
	}
	if lo < 0 || hi < 0 || !ok || by < 1 {
		return item
	}
	n := k.max - k.min + 1
	if lo > k.max && h.and { // 7 is no Sunday there
		lo, hi = lo-n, hi-n
	}
	if hi < lo {
		hi += n
	}
	hi = min(hi, lo+n-1)
	if hi <= k.max || hi == 7 && k.week() && !h.and {
		return stretch(k, lo, hi, by, named)
	}
	last := lo + (k.max-lo)/by*by
	first := stretch(k, lo, last, by, named)
	if last+by > hi {
		return first
	}
	return first + "," + stretch(k, last+by-n, hi-n, by, named)
}

// meant reads a number, or the beginning of one name alone; negative: it is none.
func (k *kind) meant(text string) (n int, named bool) {
	if n, ok := number(text); ok {
		if n < k.min || n > k.max && (n != 7 || !k.week()) {
			return -1, false
		}
		return n, false
	}
	n = -1
	for i, name := range k.names {
		if text != "" && strings.HasPrefix(name, strings.ToLower(text)) {
			if n >= 0 {
				return -1, false
			}
			n = k.min + i
		}
	}
	return n, n >= 0
}

// stretch writes the values from lo to hi.
func stretch(k *kind, lo, hi, by int, named bool) string {
	name := func(n int) string {
		if named {
			return k.names[(n-k.min)%len(k.names)][:3]
		}
		return strconv.Itoa(n)
	}
	hi -= (hi - lo) % by
	switch {
	case hi == lo:
		return name(lo)
	case hi == lo+by:
		return name(lo) + "," + name(hi)
	case by == 1:
		return name(lo) + "-" + name(hi)
	}
	return name(lo) + "-" + name(hi) + "/" + strconv.Itoa(by)
}
