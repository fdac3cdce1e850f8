package mistakes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/soloist-go/soloist/internal/proctest"
)

// A mistake is a small change of the program that a test has to notice.
//
//	# what is wrong
//	test PACKAGE TEST [PROPERTY]
//	file FILE
//	-text that is in the file once
//	+text in its place
//
// TEST may have slashes, for a test in a test. PROPERTY is for a test that draws seeds: the property whose violation is
// reported within the first of them. More than one stretch of text, also of more than one file, may be replaced. Those of
// drawn.txt were drawn at random.
type mistake struct {
	name     string
	pkg      string // a directory, from the root of the repository
	test     string // with a slash: a test in one
	property string
	edits    []proctest.Edit
}

// function is the name of the test function.
func (m mistake) function() string {
	name, _, _ := strings.Cut(m.test, "/")
	return name
}

// read returns all mistakes in testdata.
func read() (all []mistake, err error) {
	files, err := filepath.Glob("testdata/*.txt")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if all, err = add(all, line); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
			}
		}
	}
	return all, err
}

// add takes a line: of the last mistake, or of a new one.
func add(all []mistake, line string) ([]mistake, error) {
	if name, begins := strings.CutPrefix(line, "# "); begins {
		return append(all, mistake{name: name}), nil
	}
	if line == "" {
		return all, nil
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%q comes before the first mistake", line)
	}
	m := &all[len(all)-1]
	if words := strings.SplitN(line, " ", 4); words[0] == "test" && len(words) > 2 {
		m.pkg, m.test, m.property = words[1], words[2], strings.Join(words[3:], "")
		return all, nil
	}
	if file, is := strings.CutPrefix(line, "file "); is {
		m.edits = append(m.edits, proctest.Edit{File: file})
		return all, nil
	}
	return all, m.replace(line[0], line[1:])
}

// replace takes a line of text: one to be replaced after one of a replacement begins the next stretch.
func (m *mistake) replace(sign byte, text string) error {
	if len(m.edits) == 0 || sign != '-' && sign != '+' {
		return fmt.Errorf("want a line that begins with #, test, file, - or +")
	}
	e := &m.edits[len(m.edits)-1]
	switch {
	case sign == '+' && e.New == "":
		e.New = text
	case sign == '+':
		e.New += "\n" + text
	case e.Old == "":
		e.Old = text
	case e.New == "":
		e.Old += "\n" + text
	default:
		m.edits = append(m.edits, proctest.Edit{File: e.File, Old: text})
	}
	return nil
}
