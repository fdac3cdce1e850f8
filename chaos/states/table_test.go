// Package states_test compares the states of a lease, as the service is
// documented to have them, with those of the simulated service and of the
// stores: any sequence of calls and pauses, and after each of them every answer.
package states_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// documented are the tables of the Lease Blob operation
// (https://learn.microsoft.com/rest/api/storageservices/lease-blob#outcomes-of-lease-operations-on-blobs-by-lease-state).
// A is the id of the lease's last holder, B and C are others, X is one that the
// service makes up. A cell says to which state the call leads, or with which
// status and code it is refused; where the pages tell no code, any of a lease.
const documented = `
                | Available                             | Leased(A)                             | Breaking(A)                            | Broken(A)                           | Expired(A)
acquire         | Leased(X)                             | 409 LeaseAlreadyPresent               | 409 LeaseAlreadyPresent                | Leased(X)                           | Leased(X)
acquire A       | Leased(A)                             | Leased(A)                             | 409 LeaseIsBreakingAndCannotBeAcquired | Leased(A)                           | Leased(A)
acquire B       | Leased(B)                             | 409 LeaseAlreadyPresent               | 409 LeaseAlreadyPresent                | Leased(B)                           | Leased(B)
break 0         | 409 LeaseNotPresentWithLeaseOperation | Broken(A)                             | Broken(A)                              | Broken(A)                           | Broken(A)
break later     | 409 LeaseNotPresentWithLeaseOperation | Breaking(A)                           | Breaking(A)                            | Broken(A)                           | Broken(A)
change A to B   | 409 LeaseNotPresentWithLeaseOperation | Leased(B)                             | 409 LeaseIsBreakingAndCannotBeChanged  | 409                                 | 409
change B to A   | 409                                   | Leased(A)                             | 409                                    | 409                                 | 409
change B to C   | 409                                   | 409 LeaseIdMismatchWithLeaseOperation | 409                                    | 409                                 | 409
renew A         | 409 LeaseIdMismatchWithLeaseOperation | Leased(A)                             | 409 LeaseIsBrokenAndCannotBeRenewed    | 409 LeaseIsBrokenAndCannotBeRenewed | Leased(A)
renew B         | 409                                   | 409 LeaseIdMismatchWithLeaseOperation | 409                                    | 409                                 | 409
release A       | 409 LeaseIdMismatchWithLeaseOperation | Available                             | Available                              | Available                           | Available
release B       | 409                                   | 409                                   | 409                                    | 409                                 | 409
write           | Available                             | 412 LeaseIdMissing                    | 412 LeaseIdMissing                     | Available                           | Available
write A         | 412                                   | Leased(A)                             | Breaking(A)                            | 412                                 | 412
write B         | 412                                   | 412 LeaseIdMismatchWithBlobOperation  | 412                                    | 412                                 | 412
read            | Available                             | Leased(A)                             | Breaking(A)                            | Broken(A)                           | Expired(A)
read A          | 412                                   | Leased(A)                             | Breaking(A)                            | 412                                 | 412
read B          | 412                                   | 412                                   | 412                                    | 412                                 | 412
time            | Available                             | Expired(A)                            | Broken(A)                              | Broken(A)                           | Expired(A)
`

// A cell is what one call leads to in one state.
type cell struct {
	next   string // the state
	status int    // of a refusal; zero: it is none
	code   string // empty: any of a lease
}

// A table has its rows by what is called, and in them its cells by state.
type table map[string]map[string]cell

var refusal = regexp.MustCompile(`^(4\d\d) ?(Lease\w+)?$`)

func parse(text string) table {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	columns := split(lines[0])
	t := table{}
	for _, line := range lines[1:] {
		fields := split(line)
		row := map[string]cell{}
		for i, field := range fields[1:] {
			c := cell{next: state(field)}
			if m := refusal.FindStringSubmatch(field); m != nil {
				status, _ := strconv.Atoi(m[1])
				c = cell{next: state(columns[i+1]), status: status, code: m[2]}
			}
			row[state(columns[i+1])] = c
		}
		t[fields[0]] = row
	}
	return t
}

func split(line string) (fields []string) {
	for field := range strings.SplitSeq(line, "|") {
		fields = append(fields, strings.TrimSpace(field))
	}
	return fields
}

// state is the name of a state as the service tells it.
func state(field string) string {
	name, _, _ := strings.Cut(field, "(")
	return strings.ToLower(name)
}

// states are those of the table.
var states = []string{"available", "leased", "breaking", "broken", "expired"}

// forged returns the table with c in the place of another cell.
func (t table) forged(row, state string, c cell) table {
	forged := table{}
	for name, cells := range t {
		forged[name] = maps.Clone(cells)
	}
	forged[row][state] = c
	return forged
}

// forgeries are wrong cells for one that is right.
func forgeries(row, state string, right cell) (wrong []cell) {
	if right.status == 0 && row != "time" {
		wrong = append(wrong, cell{next: state, status: 409})
	}
	if right.status == 0 {
		i := slices.Index(states, right.next)
		return append(wrong, cell{next: states[(i+1)%len(states)]})
	}
	wrong = append(wrong, cell{next: "leased"}, cell{next: state, status: 821 - right.status, code: right.code})
	if right.code != "" {
		wrong = append(wrong, cell{next: state, status: right.status, code: "LeaseOther"})
	}
	return wrong
}

func (c cell) String() string {
	if c.status > 0 {
		return strings.TrimSpace(fmt.Sprint(c.status, " ", c.code))
	}
	return c.next
}
