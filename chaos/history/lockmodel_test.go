package history_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// A turn is a part of a call of Do or TryDo: that its function began with the lock, that it let the
// lock go, or that the lock was held by another.
type turn struct {
	what  string // begin, end, held
	hold  int    // which of all holds of the history
	slot  int
	token int64
}

// A place is what is known of one slot.
type place struct {
	hold  int // the hold that is under way; zero: none
	token int64
}

// maxPlaces is how many slots a lock may have here. The array keeps states comparable.
const maxPlaces = 3

type places [maxPlaces]place

// lockModel is a lock with slots: each has one holder at a time, and each holder a larger token
// than the one before.
func lockModel(slots int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return places{} },
		Step: func(state, input, _ any) (bool, any) {
			s, in := state.(places), input.(turn)
			p := &s[in.slot]
			switch in.what {
			case "begin":
				fits := p.hold == 0 && in.token > p.token
				*p = place{in.hold, in.token}
				return fits, s
			case "end":
				fits := p.hold == in.hold
				p.hold = 0
				return fits, s
			}
			for _, p := range s[:slots] {
				if p.hold == 0 {
					return false, s
				}
			}
			return true, s
		},
		DescribeOperation: func(input, _ any) string { return fmt.Sprint(input) },
	}
}

// turn notes a part of a call.
func (h *history) turn(client int, what turn, from, to time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.met[what.what]++
	h.add(client, what, nil, from, to)
}

// begun numbers a hold, and finds out its slot from the ID: "north@token", or "north@token/slot".
func (h *history) begun(id string, token int64) turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holds++
	_, number, _ := strings.Cut(id, "/")
	slot, _ := strconv.Atoi(number) // none: the first
	return turn{what: "begin", hold: h.holds, slot: slot, token: token}
}

// forgiving takes into account that a call has failed, or that answers were lost: it may have kept the lock from others for a
// while, and may not have let it go before its lease ran out.
func (h *history) forgiving() *history {
	h.ops = slices.DeleteFunc(h.ops, func(op porcupine.Operation) bool { return op.Input.(turn).what == "held" })
	for i := range h.ops {
		if h.ops[i].Input.(turn).what == "end" {
			h.ops[i].Return = int64(never)
		}
	}
	return h
}
