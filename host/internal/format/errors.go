package format

import (
	"errors"
	"strings"
)

// Hanging escapes each line of a text, and sets off the second and later ones.
func Hanging(text string) string {
	all := strings.Split(text, "\n")
	for i, part := range all {
		all[i] = Escape(part)
	}
	return strings.Join(all, "\n    ")
}

// Lines separates joined errors, so that each line says by itself what it
// is about.
func Lines(err error) (all []string) {
	if many, ok := err.(interface{ Unwrap() []error }); ok && isJoin(err, many.Unwrap()) {
		for _, e := range many.Unwrap() {
			all = append(all, Lines(e)...)
		}
		return all
	}
	if inner := errors.Unwrap(err); inner != nil {
		if prefix, ok := strings.CutSuffix(err.Error(), inner.Error()); ok {
			for _, line := range Lines(inner) {
				all = append(all, prefix+line)
			}
			return all
		}
	}
	return []string{err.Error()}
}

// isJoin distinguishes [errors.Join] from an error with several causes in one sentence.
func isJoin(err error, parts []error) bool {
	return err.Error() == errors.Join(parts...).Error()
}
