// Package fencing holds recipes, to be copied, for a resource that refuses the
// writes of a run which has lost its lease but goes on. It refuses them by the
// token of the run, [soloist.Run.Token], which grows with each run of a job.
//
//	http.go  a service that you run: [Send] and [Fence]
//	sql.go   one row: [SaveReport]; several: [Fenced]
//	blob.go  a blob: [WriteBlob]
//
// What each of them keeps up: once a token was accepted, no smaller one is, and
// whatever was accepted before has taken effect before. An equal token is
// accepted, because a run writes more than once.
//
// What none of them can do: distinguish a stale run from a slow one before a
// newer run has written. A fence orders the writes of two runs; it does not
// undo the writes of the first. Tokens of different jobs cannot be compared: a
// fence serves one job.
package fencing

import "errors"

// ErrStale is what a write of a run comes to after a newer run has written. To
// try again is of no use: let the job return it as [soloist.Permanent].
var ErrStale = errors.New("stale token: a newer run has written")
