package schedule

import "fmt"

// kind is what one of the six fields may hold.
type kind struct {
	name     string
	min, max int
	names    []string // names[i] stands for min+i
}

var kinds = [6]kind{
	{name: "second", max: 59},
	{name: "minute", max: 59},
	{name: "hour", max: 23},
	{name: "day-of-month", min: 1, max: 31},
	{name: "month", min: 1, max: 12, names: []string{"january", "february", "march", "april", "may", "june", "july",
		"august", "september", "october", "november", "december"}},
	{name: "day-of-week", max: 6, names: []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}},
}

func (k *kind) clock() bool { return k.name == "second" || k.name == "minute" || k.name == "hour" }
func (k *kind) day() bool   { return k.name == "day-of-month" || k.week() }
func (k *kind) week() bool  { return k.name == "day-of-week" }

// allowed completes "want ...".
func (k *kind) allowed(and bool) string {
	top := k.max
	if k.week() && !and {
		top = 7
	}
	s := fmt.Sprintf("%d-%d", k.min, top)
	if k.names == nil {
		return s
	}
	first, last := k.names[0], k.names[len(k.names)-1]
	if !and {
		first, last = first[:3], last[:3]
	}
	return s + " or " + first + "-" + last
}
