package format

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// A Grid is a table that is no wider than what it is printed on. Where not all columns fit, those go that say the least,
// and the widest of the others are cut.
type Grid struct {
	titles []string
	least  []int
	rows   []gridRow
}

type gridRow struct {
	texts []string
	tone  Tone   // of the second column
	below string // in lines of its own, indented
}

// gap is what lies between two columns.
const gap = 2

// NewGrid returns a table without rows. Of each column it gets the fewest characters of its cells that are of use; zero: the
// column is there only where no cell has to be cut for it.
func NewGrid(titles string, least ...int) *Grid {
	return &Grid{titles: strings.Split(titles, "\t"), least: least}
}

// Row adds a row: a text for each column.
func (g *Grid) Row(texts ...string) *Grid {
	for i, text := range texts {
		texts[i] = Line(text)
	}
	g.rows = append(g.rows, gridRow{texts: texts})
	return g
}

// Tone says how the second cell of the last row looks, which is the state of something.
func (g *Grid) Tone(tone Tone) *Grid {
	g.rows[len(g.rows)-1].tone = tone
	return g
}

// Below puts a text under the last row, which may take several lines.
func (g *Grid) Below(text string) { g.rows[len(g.rows)-1].below = text }

// Print writes the table with its titles.
func (g *Grid) Print(w io.Writer, width int, colour bool) {
	widths := g.fit(width)
	printRow(w, gridRow{texts: g.titles}, widths, false)
	for _, r := range g.rows {
		printRow(w, r, widths, colour)
		if r.below != "" {
			Wrapped(w, "  "+r.below, width)
		}
	}
}

// printRow writes a line without blanks at its end. A column of width 0 is left out.
func printRow(w io.Writer, r gridRow, widths []int, colour bool) {
	var b strings.Builder
	blanks := 0
	for i, text := range r.texts {
		if widths[i] == 0 {
			continue
		}
		text = cut(text, widths[i])
		b.WriteString(strings.Repeat(" ", blanks))
		b.WriteString(Paint(colour && i == 1 && r.tone != "", r.tone, text))
		blanks = widths[i] - Width(text) + gap
	}
	fmt.Fprintln(w, b.String())
}

// fit returns the widths of the columns; zero: the column is left out.
func (g *Grid) fit(width int) []int {
	widths, least := make([]int, len(g.titles)), make([]int, len(g.titles))
	for i, title := range g.titles {
		widths[i] = Width(title)
		for _, r := range g.rows {
			widths[i] = max(widths[i], Width(r.texts[i]))
		}
		least[i] = min(widths[i], max(g.least[i], 1))
	}
	drop := func(i int) { widths[i], least[i] = 0, 0 }
	for i := len(widths) - 1; i >= 0 && total(widths) > width; i-- {
		if g.least[i] == 0 {
			drop(i)
		}
	}
	for i := len(widths) - 1; i > 0 && total(least) > width; i-- {
		drop(i)
	}
	for total(widths) > width {
		widest := 0
		for i := range widths {
			if widths[i]-least[i] > 0 && (widths[widest] <= least[widest] || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widths[widest] == 1 {
			break // one column, and no room for it
		}
		widths[widest]--
	}
	return widths
}

// total is the width of a line.
func total(widths []int) (sum int) {
	for _, n := range widths {
		if n > 0 {
			sum += n + gap
		}
	}
	return max(0, sum-gap)
}

// Width is how many columns of a terminal a line takes: two for the wide characters of East Asia and for pictures, none for marks
// that join the character before them.
func Width(text string) (n int) {
	for _, c := range text {
		n += widthOf(c)
	}
	return n
}

func widthOf(c rune) int {
	switch {
	case c < 0x300:
		return 1
	case unicode.In(c, unicode.Mn, unicode.Me):
		return 0
	case unicode.In(c, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana),
		c >= 0x3000 && c <= 0x303e, c >= 0xff01 && c <= 0xff60, c >= 0x1f300 && c <= 0x1faff:
		return 2
	}
	return 1
}

// cut is the beginning of a line that is too wide, with an ellipsis at its end.
func cut(text string, width int) string {
	if Width(text) <= width {
		return text
	}
	head, _ := split(text, width-1)
	return strings.TrimRight(head, " ") + "…"
}

// split breaks a line after so many columns.
func split(text string, width int) (head, rest string) {
	n := 0
	for i, c := range text {
		if n += widthOf(c); n > width {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// Wrapped writes a line in as many lines as the width takes. The second and later ones are set off.
func Wrapped(w io.Writer, text string, width int) {
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	wrap(w, indent, indent+"  ", text, width)
}

// Titled writes a line behind its title, and all that the width does not take below it.
func Titled(w io.Writer, title, text string, width int) {
	wrap(w, title, strings.Repeat(" ", Width(title)), text, width)
}

// wrap breaks a line at blanks, and within a word that is wider than a line.
func wrap(w io.Writer, first, hanging, text string, width int) {
	line, empty := first, true
	end := func() {
		fmt.Fprintln(w, strings.TrimRight(line, " "))
		line, empty = hanging, true
	}
	for word := range strings.FieldsSeq(text) {
		if !empty && Width(line)+1+Width(word) > width {
			end()
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
		for Width(line) > width && width > Width(hanging)+2 {
			head, rest := split(line, width)
			line = head
			end()
			line, empty = line+rest, false
		}
	}
	end()
}
