package blobtest

import (
	"net/http"
	"strconv"
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

func (l *lease) change(id, proposed string) string {
	switch l.state {
	case available, broken, expired:
		return "LeaseNotPresentWithLeaseOperation"
	case breaking:
		if id == l.id {
			return "LeaseIsBreakingAndCannotBeChanged"
		}
		return "LeaseIdMismatchWithLeaseOperation"
	}
	if id != l.id && proposed != l.id { // the second makes a repetition harmless
		return "LeaseIdMismatchWithLeaseOperation"
	}
	l.id = proposed
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

// written forgets a lease that nobody holds: it cannot be renewed any more.
func (l *lease) written() {
	if !l.live() {
		*l = lease{state: available}
	}
}

// describe tells what a read of the blob tells: never the id, nor the time left.
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

// onLease does the Lease Blob operation. Its headers are judged first, then
// its conditions, then the state of the lease.
func (b *Blob) onLease(r *Request) Answer {
	if code := r.leaseHeaders(); code != "" {
		return refuse(code)
	}
	c, o := b.find(r)
	switch {
	case c == nil:
		return refuse("ContainerNotFound")
	case o == nil:
		return refuse("BlobNotFound")
	}
	if code := r.conditions(o); code != "" {
		return refuse(code)
	}
	id := guid(r.Header["x-ms-lease-id"])
	proposed := guid(r.Header["x-ms-proposed-lease-id"])
	var status, code = http.StatusOK, ""
	var left time.Duration
	switch r.Op {
	case "acquire":
		if status = http.StatusCreated; proposed == "" {
			b.etags++
			proposed = invented(b.etags)
		}
		seconds, _ := strconv.Atoi(r.Header["x-ms-lease-duration"])
		code = o.lease.acquire(r.now, proposed, time.Duration(seconds)*time.Second)
	case "renew":
		code = o.lease.renew(r.now, id)
	case "change":
		code = o.lease.change(id, proposed)
	case "release":
		code = o.lease.release(id)
	case "break":
		status = http.StatusAccepted
		left, code = o.lease.breakUp(r.now, r.breakPeriod())
	}
	if code != "" {
		return refuse(code)
	}
	a := accept(status).of(o)
	if r.Op == "break" {
		whole := (left + time.Second - 1) / time.Second
		a.Header.Set("X-Ms-Lease-Time", strconv.Itoa(int(whole)))
	} else if o.lease.id != "" {
		a.Header.Set("X-Ms-Lease-Id", o.lease.id)
	}
	return a
}

// leaseHeaders checks what an operation must and may bring.
func (r *Request) leaseHeaders() string {
	span, id := r.Header["x-ms-lease-duration"], r.Header["x-ms-lease-id"]
	proposed, period := r.Header["x-ms-proposed-lease-id"], r.Header["x-ms-lease-break-period"]
	switch r.Op {
	case "acquire":
		id = ""
		if span == "" {
			return "MissingRequiredHeader"
		}
	case "break":
		id = ""
	case "change":
		if proposed == "" {
			return "MissingRequiredHeader"
		}
		fallthrough
	default:
		if id == "" {
			return "MissingRequiredHeader"
		}
	}
	if id != "" && guid(id) == "" || proposed != "" && guid(proposed) == "" ||
		span != "" && span != "-1" && !within(span, 15, 60) || period != "" && !within(period, 0, 60) {
		return "InvalidHeaderValue"
	}
	return ""
}

// breakPeriod is negative when the request has none.
func (r *Request) breakPeriod() time.Duration {
	seconds, err := strconv.Atoi(r.Header["x-ms-lease-break-period"])
	if err != nil {
		return -1
	}
	return time.Duration(seconds) * time.Second
}

// LeaseID is the lease id in the request; of acquire the proposed one.
func (r *Request) LeaseID() string {
	if r.Op == "acquire" {
		return r.Header["x-ms-proposed-lease-id"]
	}
	return r.Header["x-ms-lease-id"]
}

func within(text string, low, high int) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= low && n <= high
}

// guid returns a lease id in its canonical form, or nothing. The service takes
// the formats of the Guid constructor
// (https://learn.microsoft.com/dotnet/api/system.guid.-ctor), of which the
// commonest three are enough here.
func guid(text string) string {
	s := strings.ToLower(text)
	if n := len(s); n == 38 && (s[0] == '{' && s[37] == '}' || s[0] == '(' && s[37] == ')') {
		s = s[1:37]
	}
	if len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		s = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	}
	if len(s) != 32 || strings.Trim(s, "0123456789abcdef") != "" {
		return ""
	}
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
