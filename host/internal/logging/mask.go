package logging

import (
	"io"
	"strings"
)

// Mask returns what replaces secrets, the longest first, by three stars in a text that is kept.
func Mask(secrets []string) func(text string) string {
	var pairs []string
	for _, s := range secrets {
		pairs = append(pairs, s, "***")
	}
	whole := strings.NewReplacer(pairs...)
	return func(text string) string {
		text = whole.Replace(text)
		before, after, cut := strings.Cut(text, omitted)
		for ; cut; before, after, cut = cutNext(before, after) {
			for _, s := range secrets {
				before = withoutBeginning(before, s)
			}
		}
		return before
	}
}

// Masked is a writer to w of lines without secrets.
func Masked(w io.Writer, secrets []string) io.Writer { return &masked{w, Mask(secrets)} }

type masked struct {
	io.Writer
	mask func(text string) string
}

func (m *masked) Write(line []byte) (int, error) {
	if _, err := io.WriteString(m.Writer, m.mask(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}

// omitted follows what is left of a text that was too long.
const omitted = " … "

func cutNext(before, after string) (string, string, bool) {
	next, rest, cut := strings.Cut(after, omitted)
	return before + omitted + next, rest, cut
}

// withoutBeginning masks the beginning of a secret where a text was cut in the middle of it.
func withoutBeginning(text, secret string) string {
	for n := len(secret) - 1; n >= ShortestSecret; n-- {
		if rest, ok := strings.CutSuffix(text, secret[:n]); ok {
			return rest + "***"
		}
	}
	return text
}

// ShortestSecret is how long a text has to be that is masked: a shorter one may be part of any word.
const ShortestSecret = 8
