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
		parts := strings.Split(whole.Replace(text), omitted)
		for i := range parts[:len(parts)-1] {
			for _, s := range secrets {
				parts[i] = withoutBeginning(parts[i], s)
			}
		}
		return strings.Join(parts, omitted)
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
