package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/store"
)

const (
	storageEvery = time.Second // how often the health is looked at
	storageAgain = time.Minute // how often the same trouble is logged

	defaultPatience = time.Minute
)

// patient is a store that knows how long a refusal may take to pass by itself.
type patient interface {
	Patience() time.Duration
}

// A Storage says why the store is out of reach, and what to do about it,
// at once and then each minute. It ends the program if the store has refused
// its credentials ever since it started: such a program does nothing, and looks
// alive. Once the store has worked, the credentials were right, and it waits.
type Storage struct {
	log      *slog.Logger
	health   func() soloist.Health
	explain  func(error) (text, advice string)
	patience time.Duration
	end      context.CancelCauseFunc

	told    time.Time // when the trouble was logged last; zero: there is none
	refused time.Time // when the present refusals were first seen; zero: there are none
}

// NewStorage watches the store of a scheduler. explain says what an error of the
// store is about; end ends the program.
func NewStorage(log *slog.Logger, sched *soloist.Scheduler, backend store.Store, explain func(error) (text, advice string), end context.CancelCauseFunc) *Storage {
	s := &Storage{log: log, health: sched.Health, explain: explain, patience: defaultPatience, end: end}
	if known, ok := backend.(patient); ok {
		s.patience = known.Patience()
	}
	return s
}

// look returns false once it has ended the program.
func (s *Storage) look() bool {
	h := s.health()
	if !errors.Is(h.Storage, fs.ErrPermission) {
		s.refused = time.Time{} // only refusals in a row count
	}
	if h.Storage == nil {
		s.told = time.Time{}
		return true
	}
	refused := !h.Reached && errors.Is(h.Storage, fs.ErrPermission)
	if refused && s.refused.IsZero() {
		s.refused = time.Now()
	}
	if refused && time.Since(s.refused) >= s.patience {
		words, _ := s.words(h.Storage)
		s.end(&RefusedError{words, s.patience})
		return false
	}
	if time.Since(s.told) >= storageAgain {
		s.tell(h.Storage, refused)
		s.told = time.Now()
	}
	return true
}

func (s *Storage) tell(err error, refused bool) {
	words, advised := s.words(err)
	switch {
	case refused:
		left := (s.patience - time.Since(s.refused)).Round(time.Second)
		s.log.Error(fmt.Sprintf("the store refuses this program, which ends in %s unless that changes: %s", left, words))
	case advised || !s.told.IsZero(): // the scheduler logs the beginning of an outage, without advice
		s.log.Warn("the store is out of reach: " + words)
	}
}

// words are an error and, if something is known of that, what to do about it.
func (s *Storage) words(err error) (words string, advised bool) {
	text, advice := s.explain(err)
	if advice != "" {
		text += ": " + advice
	}
	return format.Line(text), advice != ""
}

// Run looks until ctx ends.
func (s *Storage) Run(ctx context.Context) {
	t := time.NewTicker(storageEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if !s.look() {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// A RefusedError ends a program whose credentials the store has never taken.
type RefusedError struct {
	words    string
	patience time.Duration
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the store has refused this program since it started, for %s: %s", e.patience, e.words)
}
