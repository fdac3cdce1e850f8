package format

import (
	"os"
)

// A Tone is how a text looks on a terminal (ECMA-48, Select Graphic Rendition).
type Tone string

const (
	Bold   Tone = "1"
	Faint  Tone = "2"
	Red    Tone = "31"
	Green  Tone = "32"
	Yellow Tone = "33"
	Normal Tone = "39" // as long as the colours, so that a table stays aligned
)

// WantsColour follows https://no-color.org.
func WantsColour() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// Paint gives a text a tone where there are colours.
func Paint(colour bool, as Tone, text string) string {
	if !colour {
		return text
	}
	return "\x1b[" + string(as) + "m" + text + "\x1b[0m"
}

// OutcomeTone is how an outcome looks.
func OutcomeTone(outcome string) Tone {
	switch outcome {
	case "succeeded":
		return Green
	case "failed", "stalled":
		return Red
	}
	return Yellow
}
