package schedule_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
)

// page returns docs/schedules.md, which tells users what this package does.
func page(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/schedules.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// rows returns the cells of the table with that header, without the backquotes.
func rows(t *testing.T, header string, atLeast int) (all [][]string) {
	t.Helper()
	_, table, found := strings.Cut(page(t), "\n"+header+"\n|---")
	for _, line := range strings.Split(table, "\n")[1:] {
		cells, ok := strings.CutPrefix(line, "| ")
		if !ok {
			break
		}
		cells = strings.ReplaceAll(strings.TrimSuffix(cells, " |"), "`", "")
		all = append(all, strings.Split(cells, " | "))
	}
	if !found || len(all) < atLeast {
		t.Fatalf("the page has %d rows under %q, want %d at least", len(all), header, atLeast)
	}
	return all
}

func TestPageWords(t *testing.T) {
	for _, row := range rows(t, "| Text | In words |", 18) {
		if got := parse(t, row[0], "").Words(); got != row[1] {
			t.Errorf("%s: got %q, the page says %q", row[0], got, row[1])
		}
	}
}

func TestPageRefusals(t *testing.T) {
	for _, row := range rows(t, "| Text | Refused because |", 13) {
		if _, err := schedule.Parse(row[0], "", "job"); err == nil || !strings.Contains(err.Error(), row[1]) {
			t.Errorf("%s: got %v, the page says %q", row[0], err, row[1])
		}
	}
}

// TestPageTicks wants no tick between those that the page lists.
func TestPageTicks(t *testing.T) {
	const layout = "2006-01-02 15:04 -07:00"
	left := []string{"America/New_York", "America/Santiago", "America/Havana", "Africa/Cairo",
		"Australia/Lord_Howe", "Pacific/Apia", "Antarctica/Troll", "Africa/Casablanca"}
	for _, row := range rows(t, "| Zone | Text | Clocks | Ticks |", 16) {
		zone, text, want := row[0], row[1], strings.Split(row[3], "<br>")
		left = slices.DeleteFunc(left, func(z string) bool { return z == zone })
		s := parse(t, text, zone)
		at, err := time.Parse(layout, want[0])
		if err != nil {
			t.Fatal(err)
		}
		from := at
		var got []string
		for at = at.Add(-1); len(got) < len(want); {
			at = s.Next(at)
			got = append(got, at.In(s.Location()).Format(layout))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s %s: got %q, the page says %q", zone, text, got, want)
		}
		if clocks := clocksAfter(from, s.Location()); clocks != row[2] {
			t.Errorf("%s: the clock goes %s, the page says %s", zone, clocks, row[2])
		}
	}
	if len(left) > 0 {
		t.Errorf("the page has no row for %q", left)
	}
}

// clocksAfter finds the first change of clocks within three days.
func clocksAfter(from time.Time, loc *time.Location) string {
	const layout = "2006-01-02 15:04"
	for at := from; at.Before(from.AddDate(0, 0, 3)); at = at.Add(time.Minute) {
		_, old := at.Add(-time.Minute).In(loc).Zone()
		if _, offset := at.In(loc).Zone(); offset != old {
			return at.UTC().Add(time.Duration(old)*time.Second).Format(layout) + " → " + at.In(loc).Format(layout)
		}
	}
	return "nowhere"
}

// TestPageFigures holds what the page says of the brute force against what it compares.
func TestPageFigures(t *testing.T) {
	text := page(t)
	for _, want := range []string{
		fmt.Sprintf("all %d zones", len(strings.Fields(zoneList))),
		fmt.Sprintf("%d texts", len(texts)+len(fine)),
		"-run 'TestBruteForce$' -full",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
