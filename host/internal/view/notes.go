package view

import (
	"fmt"
	"strings"

	"github.com/soloist-go/soloist/host/internal/format"
)

// Notes are texts about jobs. A text that is the same for many jobs is one line, and so is a difference that each of
// them has with values of its own.
type Notes struct {
	subjects []string            // in the order in which they came
	texts    map[string][]string // of each subject
	jobs     map[string][]string // with a text
	first    map[string]string   // a text as the first of its jobs has it
}

// Add adds a text about a job. An entry of the store is named by its job, and makes no other text.
func (n *Notes) Add(job, text string) {
	general := strings.ReplaceAll(text, "/"+job, "/JOB")
	n.add(job, general, general, text)
}

// Differ adds a difference, which says in which values after what it is about.
func (n *Notes) Differ(job, text string) {
	subject, _, _ := strings.Cut(text, ": ")
	n.add(job, subject, text, text)
}

func (n *Notes) add(job, subject, general, text string) {
	if n.jobs == nil {
		n.texts, n.jobs, n.first = map[string][]string{}, map[string][]string{}, map[string]string{}
	}
	if n.texts[subject] == nil {
		n.subjects = append(n.subjects, subject)
	}
	if n.jobs[general] == nil {
		n.texts[subject] = append(n.texts[subject], general)
		n.first[general] = text
	}
	if all := n.jobs[general]; len(all) == 0 || all[len(all)-1] != job { // a job has it once, however many shards
		n.jobs[general] = append(all, job)
	}
}

// fewWays is in how many ways jobs may differ in one thing until a line says no more than that they do.
const fewWays = 3

// mostNotes bounds the lines.
const mostNotes = 20

// Lines returns each text after the names of its jobs.
func (n *Notes) Lines() (lines []string) {
	for _, subject := range n.subjects {
		texts := n.texts[subject]
		if len(texts) > fewWays {
			var names []string
			for _, text := range texts {
				names = append(names, n.jobs[text]...)
			}
			lines = append(lines, fmt.Sprintf("%s: %s, in %d ways: see status JOB", format.Names(names), subject, len(texts)))
			continue
		}
		for _, text := range texts {
			names := n.jobs[text]
			if len(names) == 1 {
				text = n.first[text]
			}
			lines = append(lines, format.Names(names)+": "+text)
		}
	}
	if more := len(lines) - mostNotes; more > 1 {
		lines = append(lines[:mostNotes], fmt.Sprintf("and %d more notes: see status JOB, or status --json", more))
	}
	return lines
}
