package states_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// actions are all that may happen to a service, each drawn at random.
func (s *service) actions() map[string]func(*rapid.T) {
	all := map[string]func(*rapid.T){
		"": s.check, "time": s.time, "malformed": s.malformed, "write": s.write, "read": s.read, "create": s.create, "delete": s.remove,
	}
	for _, op := range []string{"acquire", "renew", "change", "release", "break"} {
		all[op] = func(t *rapid.T) { s.lease(t, op) }
	}
	return all
}

func (s *service) time(t *rapid.T) { s.pass(pause(t, &s.blob)) }

// pause draws a time to pass: now and then to just before, at or after the end
// of a lease.
func pause(t *rapid.T, b *blob) time.Duration {
	d := time.Duration(rapid.Int64Range(0, int64(70*time.Second)).Draw(t, "pause"))
	if around := rapid.SampledFrom([]time.Duration{-1, 0, 1}).Draw(t, "around"); !b.until.IsZero() && rapid.Bool().Draw(t, "to the end") {
		return max(0, b.until.Sub(b.now)+around)
	}
	return d
}

// drawID draws a lease id, often that of the last holder.
func (b *blob) drawID(t *rapid.T, label string) string {
	if b.id == "" {
		return rapid.SampledFrom(ids).Draw(t, label)
	}
	return rapid.SampledFrom(append([]string{b.id, b.id}, ids...)).Draw(t, label)
}

// maybeID is drawID, or none.
func (s *service) maybeID(t *rapid.T, label string) string {
	if rapid.IntRange(0, 2).Draw(t, "no "+label) == 0 {
		return ""
	}
	return s.drawID(t, label)
}

// spelled is an id in one of the forms that the service takes.
func spelled(t *rapid.T, id string) string {
	if id == "" {
		return ""
	}
	switch rapid.IntRange(0, 7).Draw(t, "form") {
	case 0:
		return strings.ToUpper(id)
	case 1:
		return strings.ReplaceAll(id, "-", "")
	case 2:
		return "{" + id + "}"
	}
	return id
}

// condition draws an If-Match or If-None-Match.
func (s *service) condition(t *rapid.T, header map[string]string) (holds bool) {
	switch rapid.IntRange(0, 9).Draw(t, "condition") {
	case 0:
		header["If-Match"] = `"0x0"`
		return false
	case 1:
		header["If-Match"] = s.etag
	case 2:
		header["If-Match"] = "*"
	}
	return true
}

// lease does a Lease Blob operation.
func (s *service) lease(t *rapid.T, op string) {
	one := try{op: op, period: -1}
	header := map[string]string{"x-ms-lease-action": one.op}
	holds := s.condition(t, header)
	success := http.StatusOK
	switch one.op {
	case "acquire":
		success = http.StatusCreated
		one.id = s.maybeID(t, "id")
		header["x-ms-proposed-lease-id"] = spelled(t, one.id)
		one.span = time.Duration(rapid.SampledFrom([]int{-1, 15, 16, 30, 60}).Draw(t, "span")) * time.Second
		header["x-ms-lease-duration"] = fmt.Sprint(int(one.span / time.Second))
	case "break":
		success = http.StatusAccepted
		if n := rapid.SampledFrom([]int{-1, 0, 1, 10, 60}).Draw(t, "period"); n >= 0 {
			one.period = time.Duration(n) * time.Second
			header["x-ms-lease-break-period"] = fmt.Sprint(n)
		}
	case "change":
		one.proposed = s.drawID(t, "proposed")
		header["x-ms-proposed-lease-id"] = spelled(t, one.proposed)
		fallthrough
	default:
		one.id = s.drawID(t, "id")
		header["x-ms-lease-id"] = spelled(t, one.id)
	}
	a := s.send("PUT", "?comp=lease", "", header)
	if !s.judge(one, holds, success, a) {
		return
	}
	told, want := "x-ms-lease-id", s.blob.id
	switch one.op {
	case "break":
		told, want = "x-ms-lease-time", s.left()
	case "release":
		want = ""
	}
	if got := a.Header.Get(told); got != want || a.Header.Get("ETag") != s.etag {
		t.Fatalf("%+v: got %s %q and ETag %s, want %q and %s", one, told, got, a.Header.Get("ETag"), want, s.etag)
	}
}

// malformed is a lease operation whose headers are refused in any state.
func (s *service) malformed(t *rapid.T) {
	const id, guid, span, period = "x-ms-lease-id", "x-ms-proposed-lease-id", "x-ms-lease-duration", "x-ms-lease-break-period"
	bad := rapid.SampledFrom([]struct {
		op     string
		header map[string]string
		want   cell
	}{
		{"acquire", nil, missing},
		{"acquire", map[string]string{span: "14"}, invalid},
		{"acquire", map[string]string{span: "61"}, invalid},
		{"acquire", map[string]string{span: "0"}, invalid},
		{"acquire", map[string]string{span: "-2"}, invalid},
		{"acquire", map[string]string{span: "15s"}, invalid},
		{"acquire", map[string]string{span: "15", guid: "me"}, invalid},
		{"renew", nil, missing},
		{"renew", map[string]string{id: "me"}, invalid},
		{"release", nil, missing},
		{"release", map[string]string{id: ids[0][1:]}, invalid},
		{"change", map[string]string{id: ids[0]}, missing},
		{"change", map[string]string{guid: ids[0]}, missing},
		{"change", map[string]string{id: ids[0], guid: "me"}, invalid},
		{"break", map[string]string{period: "61"}, invalid},
		{"break", map[string]string{period: "-1"}, invalid},
	}).Draw(t, "malformed")
	header := map[string]string{"x-ms-lease-action": bad.op}
	maps.Copy(header, bad.header)
	s.refused(s.send("PUT", "?comp=lease", "", header), fmt.Sprint(header), bad.want)
}

// write replaces the metadata, or the content with them.
func (s *service) write(t *rapid.T) {
	one := try{op: "write", id: s.maybeID(t, "id")}
	record := rapid.StringMatching(`[a-z]{1,4}`).Draw(t, "record")
	header := map[string]string{"x-ms-lease-id": spelled(t, one.id), "x-ms-meta-record": record}
	holds := s.condition(t, header)
	what, body, success := "?comp=metadata", "", http.StatusOK
	// A put of a blob that is not there makes it: that is create.
	if s.exists && rapid.Bool().Draw(t, "put") {
		what, body, success = "", rapid.String().Draw(t, "content"), http.StatusCreated
		header["x-ms-blob-type"] = "BlockBlob"
	}
	a := s.send("PUT", what, body, header)
	if !s.judge(one, holds, success, a) {
		return
	}
	if s.record = record; success == http.StatusCreated {
		s.body = body
	}
	s.written(t, a.Header.Get("ETag"))
}

func (s *service) read(t *rapid.T) {
	one := try{op: "read", id: s.maybeID(t, "id")}
	header := map[string]string{"x-ms-lease-id": spelled(t, one.id)}
	holds := s.condition(t, header)
	method := rapid.SampledFrom([]string{"GET", "HEAD"}).Draw(t, "method")
	s.judge(one, holds, http.StatusOK, s.send(method, "", "", header))
}

// create makes the blob unless there is one. A leased one asks for its lease
// first (https://github.com/Azure/Azurite/issues/2637).
func (s *service) create(t *rapid.T) {
	record := rapid.StringMatching(`[A-Z]{1,4}`).Draw(t, "record")
	a := s.send("PUT", "", "", map[string]string{"x-ms-blob-type": "BlockBlob", "If-None-Match": "*", "x-ms-meta-record": record})
	if s.exists {
		want := exists
		if c := s.expect(try{op: "write"}); c.status > 0 {
			want = c
		}
		s.refused(a, "create", want)
		return
	}
	s.must(http.StatusCreated, a)
	s.exists, s.state, s.until, s.record, s.body = true, "available", time.Time{}, record, ""
	s.written(t, a.Header.Get("ETag"))
}

// remove needs what a write needs. It is rare, since it ends all that was.
func (s *service) remove(t *rapid.T) {
	if rapid.IntRange(0, 4).Draw(t, "rare") > 0 {
		return
	}
	one := try{op: "write", id: s.maybeID(t, "id")}
	if s.judge(one, true, http.StatusAccepted, s.send("DELETE", "", "", map[string]string{"x-ms-lease-id": spelled(t, one.id)})) {
		s.exists, s.state, s.blob.id, s.until = false, "available", "", time.Time{}
	}
}
