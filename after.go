package soloist

import "strings"

// names returns the names in After.
func (j *Job) names() (names []string) {
	if j.After == "" {
		return nil
	}
	for name := range strings.SplitSeq(j.After, ",") {
		names = append(names, strings.TrimSpace(name))
	}
	return names
}

// words returns when a follower is due, for people.
func (j *Job) words() string {
	names := j.names()
	text := names[len(names)-1]
	if rest := names[:len(names)-1]; len(rest) > 0 {
		text = strings.Join(rest, ", ") + " and " + text
	}
	if j.AfterAny {
		return "after " + text + ", whatever the outcome"
	}
	return "after " + text
}
