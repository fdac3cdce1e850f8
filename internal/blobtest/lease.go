package blobtest

import (
	"net/http"
	"strings"
	"time"
)

// The states of a lease.
const (
	available = "available"
	leased    = "leased"
	expired   = "expired"
	breaking  = "breaking"
	broken    = "broken"
)

// Forever is the span of an infinite lease.
const Forever = -time.Second

// A lease is the state machine of the Lease Blob page. Its methods return an
// error code, or nothing.
type lease struct {
	state string
	id    string
	span  time.Duration
	until time.Time // the end of the lease, or of breaking; zero: none
}

// settle lets time have its effect.
func (l *lease) settle(now time.Time) {
	if l.until.IsZero() || now.Before(l.until) {
		return
	}
	switch l.state {
	case leased:
		l.state = expired
	case breaking:
		l.state = broken
	}
}

func (l *lease) live() bool { return l.state == leased || l.state == breaking }

// start takes or renews the lease.
func (l *lease) start(now time.Time, id string, span time.Duration) {
	*l = lease{state: leased, id: id, span: span}
	if span != Forever {
		l.until = now.Add(span)
	}
}

func (l *lease) acquire(now time.Time, id string, span time.Duration) string {
	switch {
	case l.state == breaking && id == l.id:
		return "LeaseIsBreakingAndCannotBeAcquired"
	case l.live() && id != l.id:
		return "LeaseAlreadyPresent"
	}
	l.start(now, id, span)
	return ""
}

func (l *lease) renew(now time.Time, id string) string {
	switch {
	case l.state == available || id != l.id:
		return "LeaseIdMismatchWithLeaseOperation"
	case l.state == breaking || l.state == broken:
		return "LeaseIsBrokenAndCannotBeRenewed"
	}
	l.start(now, id, l.span)
	return ""
}

func (l *lease) release(id string) string {
	if l.state == available || id != l.id {
		return "LeaseIdMismatchWithLeaseOperation"
	}
	*l = lease{state: available}
	return ""
}

// breakUp ends the lease after period, or with its time when that is negative
// or later. It returns how long that is from now.
func (l *lease) breakUp(now time.Time, period time.Duration) (time.Duration, string) {
	var left time.Duration
	switch {
	case l.state == available:
		return 0, "LeaseNotPresentWithLeaseOperation"
	case !l.live():
	case l.until.IsZero(): // infinite: at once, or after the period
		left = max(period, 0)
	default:
		left = l.until.Sub(now)
		if period >= 0 {
			left = min(left, period)
		}
	}
	if left == 0 {
		l.state, l.until = broken, time.Time{}
	} else {
		l.state, l.until = breaking, now.Add(left)
	}
	return left, ""
}

// guard says whether the blob may be used under a lease id, or under none.
func (l *lease) guard(id string, write bool) string {
	switch {
	case id == "" && write && l.live():
		return "LeaseIdMissing"
	case id == "" || l.live() && id == l.id:
		return ""
	case l.live():
		return "LeaseIdMismatchWithBlobOperation"
	case l.state == expired && id == l.id:
		return "LeaseLost"
	}
	return "LeaseNotPresentWithBlobOperation"
}

// written forgets a lease that is not live: it cannot be renewed any more.
func (l *lease) written() {
	if !l.live() {
		*l = lease{state: available}
	}
}

// describe sets what a read of the blob shows: never the id, nor the time left.
func (l *lease) describe(h http.Header) {
	h.Set("X-Ms-Lease-State", l.state)
	h.Set("X-Ms-Lease-Status", "unlocked")
	if l.live() {
		h.Set("X-Ms-Lease-Status", "locked")
	}
	if l.state == leased {
		h.Set("X-Ms-Lease-Duration", "fixed")
		if l.span == Forever {
			h.Set("X-Ms-Lease-Duration", "infinite")
		}
	}
}

// guid returns a lease id in the form in which programs write it, in lower case, or nothing.
func guid(text string) string {
	s := strings.ToLower(text)
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' || strings.Trim(s, "0123456789abcdef-") != "" {
		return ""
	}
	return s
}
