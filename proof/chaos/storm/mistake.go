//go:build unix

package main

import (
	"strings"

	"github.com/soloist-go/soloist/internal/proctest"
)

// A mistake is what a storm over PostgreSQL has to find, by a violation with some words in it.
type mistake struct {
	words string
	loses bool            // the server loses its last commits when it is killed
	edits []proctest.Edit // of the program of the replicas
}

// mistakes are of the server, and of the statements of its store.
var mistakes = map[string]mistake{
	"loses": {words: "S3 claim", loses: true},
	"acquire": {words: "is in force until", edits: []proctest.Edit{
		statement("was text\", whenHeld+whenChanged, taken),", "was text\", whenChanged, taken),"),
	}},
	"renew": {words: "S1 covered", edits: []proctest.Edit{statement("`ends = j.clock + e.length`", "`ends = e.ends`")}},
	"write": {words: "S2 lease", edits: []proctest.Edit{
		statement("whenLost+whenOver+whenChanged, written),", "anyLease+whenChanged, written),"),
		statement("whenLost+whenOver+whenChanged, written+", "anyLease+whenChanged, written+"),
		statement("	whenLost    =", "	anyLease = `WHEN lease IS NULL THEN 'lost' `\n	whenLost ="),
	}},
}

func statement(text, with string) proctest.Edit {
	return proctest.Edit{File: "host/postgres/statements.go", Old: text, New: with}
}

// found reports whether one of the violations is of the mistake.
func (m mistake) found(violations []string) bool {
	return strings.Contains(strings.Join(violations, "\n"), m.words)
}
