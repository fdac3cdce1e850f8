package lease

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A beat moves its deadline by when it was first sent, and only while the trust has not ended.
func TestApplied(t *testing.T) {
	const length, beat = 30 * time.Second, 3 * time.Second
	long, short := trusted(length), trusted(beat)
	for name, tt := range map[string]struct {
		before         beating
		sent, answered time.Duration
		beat           time.Duration
		want           time.Duration
	}{
		"claim":                         {beating{}, 5 * time.Second, 6 * time.Second, beat, 5*time.Second + short},
		"claim answered after its time": {beating{}, 5 * time.Second, 10 * time.Second, beat, 5*time.Second + short},
		"beat":                          {beating{beat, 0, short}, time.Second, 2 * time.Second, beat, time.Second + short},
		"beat answered too late":        {beating{beat, 0, short}, time.Second, short, beat, short},
		"beat near the end of the lease": {beating{beat, long - 2*time.Second, long - 2*time.Second + short},
			long - time.Second, long - time.Second/2, beat, long},
		"outcome": {beating{beat, 0, short}, time.Second, 2 * time.Second, 0, long},
	} {
		t.Run(name, func(t *testing.T) {
			trust := trust{clock: &Clock{Elapsed: func() time.Duration { return tt.answered }}, until: long, beating: tt.before}
			trust.applied(signature{sent: tt.sent, beat: tt.beat})
			if got := trust.end(); got != tt.want {
				t.Errorf("trusted until %s, want %s", got, tt.want)
			}
		})
	}
}

// Of a write that is sent again the first sending counts, and of two writes each its own.
func TestFirstSendingCounts(t *testing.T) {
	l := newLedger("0", &record.Record{})
	one, two := &page{signature: signature{nonce: "one"}}, &page{signature: signature{nonce: "two"}}
	l.remember(one, time.Second)
	l.remember(one, 2*time.Second)
	l.remember(two, 3*time.Second)
	l.remember(two, 4*time.Second)
	if m := l.moved(store.Revision{ETag: "2"}, "two"); m.sent != 3*time.Second {
		t.Errorf("sent at %s, want 3s", m.sent)
	}
}

// A beat whose answer is lost counts from its sending, though the read that finds it comes later.
func TestABeatThatIsReadBackCountsFromItsSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const beat = 3 * time.Second
		s, begin := &sheet{}, time.Now()
		h := s.session()
		h.client.Clock.Elapsed = func() time.Duration { return time.Since(begin) }
		h.trust.until = h.Length
		s.meet = func(apply func() error) error {
			s.meet = nil
			err := apply()
			time.Sleep(time.Second)
			return errors.Join(err, errNetwork)
		}
		if err := h.WriteUntilKnown(t.Context(), func(r *record.Record) {
			r.Token, r.Run.Status = 7, event.Running
			r.Beat = record.Beat{Token: 7, Length: record.Seconds(beat)}
		}, nil); err != nil {
			t.Fatal(err)
		}
		if got, want := h.trust.end(), trusted(beat); got != want || time.Since(begin) != time.Second {
			t.Errorf("trusted until %s, want %s", got, want)
		}
	})
}
