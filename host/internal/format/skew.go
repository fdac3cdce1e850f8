package format

import (
	"fmt"
	"time"
)

const (
	SkewShown = time.Second     // by so much the clock may be off without a word
	SkewWrong = 5 * time.Second // by more it is warned of
)

// SkewWords says how far the clock is off.
func SkewWords(skew time.Duration) string {
	way := "ahead of"
	if skew < 0 {
		way = "behind"
	}
	return fmt.Sprintf("this machine's clock is %s %s the store's", skew.Abs().Round(100*time.Millisecond), way)
}

// SkewNote is skewWords where that is worth a word.
func SkewNote(skew time.Duration) string {
	if skew.Abs() <= SkewShown {
		return ""
	}
	return SkewWords(skew)
}

// SkewSeconds is the skew in JSON.
func SkewSeconds(skew time.Duration) float64 { return skew.Round(time.Millisecond).Seconds() }
