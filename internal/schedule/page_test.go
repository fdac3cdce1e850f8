package schedule_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
)

// page returns docs/schedules.md and further rows of its tables, which would not help a reader.
func page(t *testing.T) string {
	t.Helper()
	return read(t, "../../docs/schedules.md") + read(t, "testdata/schedules.md")
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// rows returns the cells of all tables with that header, without the backquotes.
func rows(t *testing.T, header string, atLeast int) (all [][]string) {
	t.Helper()
	for _, table := range strings.Split(page(t), "\n"+header+"\n|---")[1:] {
		for _, line := range strings.Split(table, "\n")[1:] {
			cells, ok := strings.CutPrefix(line, "| ")
			if !ok {
				break
			}
			cells = strings.ReplaceAll(strings.TrimSuffix(cells, " |"), "`", "")
			all = append(all, strings.Split(cells, " | "))
		}
	}
	if len(all) < atLeast {
		t.Fatalf("the page has %d rows under %q, want %d at least", len(all), header, atLeast)
	}
	return all
}

func TestPageWords(t *testing.T) {
	for _, row := range rows(t, "| Text | In words |", 25) {
		s := parse(t, row[0], "")
		if again := parse(t, s.String(), ""); s.Words() != row[1] || again.Words() != row[1] {
			t.Errorf("%s: got %q, and parsed again %q, the page says %q", row[0], s.Words(), again.Words(), row[1])
		}
	}
}

func TestPageRefusals(t *testing.T) {
	for _, row := range rows(t, "| Text | Refused because |", 21) {
		if _, err := schedule.Parse(row[0], "", "job"); err == nil || !strings.Contains(err.Error(), row[1]) {
			t.Errorf("%s: got %v, the page says %q", row[0], err, row[1])
		}
	}
}

// TestPageDays wants the first ticks from 2026 on.
func TestPageDays(t *testing.T) {
	for _, row := range rows(t, "| Text | Days |", 14) {
		if got := days(t, row[0], "2026-01-01", strings.Count(row[1], ",")+1); strings.ReplaceAll(got, " ", ", ") != row[1] {
			t.Errorf("%s: got %s, the page says %s", row[0], got, row[1])
		}
	}
}

// days lists the dates of the next n ticks in UTC.
func days(t *testing.T, text, from string, n int) string {
	t.Helper()
	s, at := parse(t, text, ""), utc(t, from+" 00:00:00").Add(-1)
	var list []string
	for range n {
		at = s.Next(at)
		list = append(list, at.Format("2006-01-02"))
	}
	return strings.Join(list, " ")
}

// TestPageItems wants each item that the page explains to be one of its field.
func TestPageItems(t *testing.T) {
	for _, row := range rows(t, "| Item | Field | Day |", 6) {
		for item := range strings.SplitSeq(row[0], ", ") {
			text := "0 0 " + item + " * *"
			if row[1] == "day of the week" {
				text = "0 0 * * " + item
			}
			parse(t, text, "")
		}
	}
}

// TestPageTexts reads every text of the page, also those outside of its tables.
func TestPageTexts(t *testing.T) {
	refused := map[string]bool{}
	for _, row := range rows(t, "| Text | Refused because |", 21) {
		refused[row[0]] = true
	}
	span, n := regexp.MustCompile("`((?:ncrontab |CRON_TZ=\\S+ )?[0-9*H]\\S*(?: [^ `]+){4,}|@every \\w+|@[a-z]+ly)`"), 0
	for _, found := range span.FindAllStringSubmatch(page(t), -1) {
		if !refused[found[1]] {
			parse(t, found[1], "")
			n++
		}
	}
	if n < 65 {
		t.Errorf("%d texts, want 65 at least", n)
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

// TestPageFigures compares what docs/correctness.md says of the brute force with what it does.
func TestPageFigures(t *testing.T) {
	text := read(t, "../../docs/correctness.md")
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
