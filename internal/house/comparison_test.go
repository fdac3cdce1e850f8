package house_test

import (
	"encoding/csv"
	"os"
	"strings"
	"testing"
)

// TestComparisonHasItsSources compares the table of docs/comparison.md with docs/comparison.csv, which says where each cell was
// read. It finds a cell that is changed, added or removed on one side alone and, of Soloist's own column, a quote that its page
// does not have any more.
func TestComparisonHasItsSources(t *testing.T) {
	f, err := os.Open("docs/comparison.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sources, err := csv.NewReader(f).ReadAll()
	if err != nil || strings.Join(sources[0], ",") != "row,column,cell,version,source,quote" {
		t.Fatalf("got %q, %v", sources[0], err)
	}
	type cell struct{ row, column, text string }
	read := map[cell]bool{}
	for i, s := range sources[1:] {
		version, source, quote := s[3], s[4], s[5]
		if version == "" || source == "" || quote == "" {
			t.Errorf("line %d lacks the version, the source or the quote: %q", i+2, s)
		}
		if s[1] == "Soloist" && !strings.Contains(words(t, source), strings.Join(strings.Fields(quote), " ")) {
			t.Errorf("line %d: %s does not say %q", i+2, source, quote)
		}
		read[cell{s[0], s[1], s[2]}] = true
	}
	table := tableOf(t, "docs/comparison.md")
	shown := map[cell]bool{}
	for _, row := range table[1:] {
		for i, text := range row[1:] {
			if text != "" {
				shown[cell{row[0], table[0][i+1], text}] = true
			}
		}
	}
	if len(shown) < 100 {
		t.Errorf("the page has %d cells, want 100 at least", len(shown))
	}
	for c := range shown {
		if !read[c] {
			t.Errorf("comparison.csv has no source of %q", c)
		}
	}
	for c := range read {
		if !shown[c] {
			t.Errorf("comparison.md has no cell %q, of which comparison.csv has the source", c)
		}
	}
}

// words returns the text of a file with single spaces, and without the marks of Go comments.
func words(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Error(err)
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(string(b), "//", "")), " ")
}

// tableOf returns the cells of the first table of a page, without the line below its head.
func tableOf(t *testing.T, name string) (rows [][]string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "|")
		if !ok && len(rows) > 0 {
			break
		}
		if !ok || strings.HasPrefix(line, "---") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(rows) > 0 && len(cells) != len(rows[0]) {
			t.Fatalf("%s: %d cells in %q, want %d", name, len(cells), line, len(rows[0]))
		}
		rows = append(rows, cells)
	}
	if len(rows) < 2 {
		t.Fatalf("%s has no table", name)
	}
	return rows
}
