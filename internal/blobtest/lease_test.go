package blobtest_test

import (
	"strings"
	"testing"
	"time"
)

var states = []string{"available", "leased", "breaking", "broken", "expired"}

// The table "Outcomes of use attempts on lease operations" of
// https://learn.microsoft.com/rest/api/storageservices/lease-blob: for each
// state of a lease of A, the state after the operation or the error code.
var outcomes = `
acquire     | leased | LeaseAlreadyPresent | LeaseAlreadyPresent | leased | leased
acquire A   | leased | leased | LeaseIsBreakingAndCannotBeAcquired | leased | leased
acquire B   | leased | LeaseAlreadyPresent | LeaseAlreadyPresent | leased | leased
break 0     | LeaseNotPresentWithLeaseOperation | broken | broken | broken | broken
break 5     | LeaseNotPresentWithLeaseOperation | breaking | breaking | broken | broken
break       | LeaseNotPresentWithLeaseOperation | breaking | breaking | broken | broken
renew A     | LeaseIdMismatchWithLeaseOperation | leased | LeaseIsBrokenAndCannotBeRenewed | LeaseIsBrokenAndCannotBeRenewed | leased
renew B     | LeaseIdMismatchWithLeaseOperation | LeaseIdMismatchWithLeaseOperation | LeaseIdMismatchWithLeaseOperation | LeaseIdMismatchWithLeaseOperation | LeaseIdMismatchWithLeaseOperation
release A   | LeaseIdMismatchWithLeaseOperation | available | available | available | available
release B   | LeaseIdMismatchWithLeaseOperation | LeaseIdMismatchWithLeaseOperation | LeaseIdMismatchWithLeaseOperation | LeaseIdMismatchWithLeaseOperation | LeaseIdMismatchWithLeaseOperation
put         | available | LeaseIdMissing | LeaseIdMissing | available | available
put A       | LeaseNotPresentWithBlobOperation | leased | breaking | LeaseNotPresentWithBlobOperation | LeaseLost
put B       | LeaseNotPresentWithBlobOperation | LeaseIdMismatchWithBlobOperation | LeaseIdMismatchWithBlobOperation | LeaseNotPresentWithBlobOperation | LeaseNotPresentWithBlobOperation
create      | BlobAlreadyExists | LeaseIdMissing | LeaseIdMissing | BlobAlreadyExists | BlobAlreadyExists
metadata    | available | LeaseIdMissing | LeaseIdMissing | available | available
metadata A  | LeaseNotPresentWithBlobOperation | leased | breaking | LeaseNotPresentWithBlobOperation | LeaseLost
metadata B  | LeaseNotPresentWithBlobOperation | LeaseIdMismatchWithBlobOperation | LeaseIdMismatchWithBlobOperation | LeaseNotPresentWithBlobOperation | LeaseNotPresentWithBlobOperation
get         | available | leased | breaking | broken | expired
get A       | LeaseNotPresentWithBlobOperation | leased | breaking | LeaseNotPresentWithBlobOperation | LeaseLost
get B       | LeaseNotPresentWithBlobOperation | LeaseIdMismatchWithBlobOperation | LeaseIdMismatchWithBlobOperation | LeaseNotPresentWithBlobOperation | LeaseNotPresentWithBlobOperation
delete      | gone | LeaseIdMissing | LeaseIdMissing | gone | gone
delete A    | LeaseNotPresentWithBlobOperation | gone | gone | LeaseNotPresentWithBlobOperation | LeaseLost
`

func TestOutcomes(t *testing.T) {
	for row := range strings.Lines(strings.TrimSpace(outcomes)) {
		cells := strings.Split(row, "|")
		for i, state := range states {
			op, want := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[i+1])
			t.Run(state+"/"+op, func(t *testing.T) {
				s := in(t, state)
				code := s.perform(strings.Fields(op))
				if got, _ := s.do("HEAD", "box/app/job"); code == "" && got == "BlobNotFound" {
					code = "gone"
				} else if code == "" {
					code = s.state()
				} else if now := s.state(); now != state {
					t.Errorf("refused, but the state went to %s", now)
				}
				if code != want {
					t.Errorf("got %s, want %s", code, want)
				}
			})
		}
	}
}

// perform does an operation of the table and checks the success status of
// lease operations.
func (s *service) perform(op []string) string {
	ids := map[string]string{"A": idA, "B": idB}
	var headers []string
	add := func(name string, n int) {
		if n < len(op) {
			if id := ids[op[n]]; id != "" {
				op[n] = id
			}
			headers = append(headers, name+": "+op[n])
		}
	}
	status := 200
	switch op[0] {
	case "acquire":
		status, headers = 201, []string{"x-ms-lease-duration: 30"}
		add("x-ms-proposed-lease-id", 1)
	case "break":
		status = 202
		add("x-ms-lease-break-period", 1)
	default:
		add("x-ms-lease-id", 1)
	}
	var code string
	switch op[0] {
	case "put":
		code, _ = s.do("PUT", "box/app/job", append(headers, "x-ms-blob-type: BlockBlob")...)
	case "create":
		code, _ = s.do("PUT", "box/app/job", append(headers, "x-ms-blob-type: BlockBlob", "If-None-Match: *")...)
	case "metadata":
		code, _ = s.do("PUT", "box/app/job?comp=metadata", headers...)
	case "get":
		code, _ = s.do("GET", "box/app/job", headers...)
	case "delete":
		code, _ = s.do("DELETE", "box/app/job", headers...)
	default:
		c, resp := s.lease(op[0], headers...)
		if code = c; code == "" && resp.StatusCode != status {
			s.t.Errorf("status %d, want %d", resp.StatusCode, status)
		}
	}
	return code
}

func TestBreakTellsTheTimeLeft(t *testing.T) {
	for _, tt := range []struct{ state, period, want string }{
		{"leased", "", "60"},
		{"leased", "5", "5"},
		{"leased", "0", "0"},
		{"infinite", "", "0"},
		{"infinite", "5", "5"},
		{"breaking", "", "50"},
		{"breaking", "60", "50"},
		{"breaking", "5", "5"},
		{"broken", "5", "0"},
		{"expired", "", "0"},
	} {
		s := in(t, tt.state)
		var headers []string
		if tt.period != "" {
			headers = []string{"x-ms-lease-break-period: " + tt.period}
		}
		_, resp := s.lease("break", headers...)
		if got := resp.Header.Get("x-ms-lease-time"); got != tt.want {
			t.Errorf("break %s of %s: %s s left, want %s", tt.period, tt.state, got, tt.want)
		}
	}
}

func TestTimeEndsALease(t *testing.T) {
	for _, tt := range []struct {
		from string
		wait time.Duration
		want string
	}{
		{"leased", 60*time.Second - 1, "leased"},
		{"leased", 60 * time.Second, "expired"},
		{"breaking", 50*time.Second - 1, "breaking"},
		{"breaking", 50 * time.Second, "broken"},
		{"infinite", time.Hour, "leased"},
	} {
		s := in(t, tt.from)
		s.now = s.now.Add(tt.wait)
		if got := s.state(); got != tt.want {
			t.Errorf("%s after %s: got %s, want %s", tt.from, tt.wait, got, tt.want)
		}
	}
	s := in(t, "leased") // a renewal has the length of the acquisition
	s.lease("acquire", "x-ms-lease-duration: 20", "x-ms-proposed-lease-id: "+idA)
	s.lease("renew", "x-ms-lease-id: "+idA)
	if s.now = s.now.Add(20 * time.Second); s.state() != "expired" {
		t.Errorf("20 s after a renewal: %s", s.state())
	}
}
