package view

import "github.com/soloist-go/soloist/host/internal/format"

// Notes are texts about jobs. A text that is the same for many jobs is one line.
type Notes struct {
	texts []string // in the order in which they came
	jobs  map[string][]string
}

// Add adds a text about a job.
func (n *Notes) Add(job, text string) {
	if n.jobs == nil {
		n.jobs = map[string][]string{}
	}
	if n.jobs[text] == nil {
		n.texts = append(n.texts, text)
	}
	n.jobs[text] = append(n.jobs[text], job)
}

// Lines returns each text after the names of its jobs.
func (n *Notes) Lines() (all []string) {
	for _, text := range n.texts {
		all = append(all, format.Names(n.jobs[text])+": "+text)
	}
	return all
}
