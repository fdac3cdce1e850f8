package view

import (
	"strings"

	"github.com/soloist-go/soloist"
)

// Root returns the job whose schedule names the ticks of a job. If the job follows others, this is the
// first job that it follows, or the first that this one follows, and so on; else the job itself.
func Root(jobs []soloist.Job, j soloist.Job) soloist.Job {
	for range jobs { // jobs that follow each other in a circle are refused at the start
		first, _, _ := strings.Cut(j.After, ",")
		for _, o := range jobs {
			if o.Name == strings.TrimSpace(first) {
				j = o
				break
			}
		}
	}
	return j
}

// AwaitWords says what a tick that has come waits for.
func AwaitWords(jobs string) string { return "waits for " + jobs }
