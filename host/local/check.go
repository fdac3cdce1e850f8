package local

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// checkName runs with each call, so it is no regular expression. A dot is allowed in front only,
// for entries that are not jobs, such as "app/.control"; so no name leaves the directory of its
// app, and none collides with another name's lock file or temporary file.
func checkName(name string) error {
	if app, job, ok := strings.Cut(name, "/"); !ok || !isPart(app) || !isPart(job) {
		return errors.New(`not the name of an entry: want "app/job", each part 1 to 63 lower-case letters, digits or hyphens, perhaps after a dot`)
	}
	return nil
}

// isPart reports whether s is a part of a name.
func isPart(s string) bool {
	s = strings.TrimPrefix(s, ".")
	return s != "" && len(s) <= 63 && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-'
	})
}

// checkID matters beyond form: the empty id would own every available lease.
func checkID(id string) error {
	ok := len(id) == 36
	for i := 0; ok && i < len(id); i++ {
		switch c := id[i]; i {
		case 8, 13, 18, 23:
			ok = c == '-'
		default:
			ok = c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
		}
	}
	if !ok {
		return fmt.Errorf("lease id %q is not a lower-case UUID", id)
	}
	return nil
}

func checkLength(d time.Duration) error {
	if d < Shortest || d > Longest {
		return fmt.Errorf("a lease of %v: want %v to %v", d, Shortest, Longest)
	}
	return nil
}

func checkRecord(record []byte) error {
	n := len(record)
	if n == 0 || n > store.MaxRecord {
		return fmt.Errorf("a record of %d bytes: want 1 to %d", n, store.MaxRecord)
	}
	if record[0] == ' ' || record[n-1] == ' ' {
		return errors.New("the record begins or ends with a space")
	}
	for i, b := range record {
		if b < ' ' || b > '~' {
			return fmt.Errorf("byte %d of the record is %#x: want printable ASCII", i, b)
		}
	}
	return nil
}

func checkCheckpoint(n int) error {
	if n > store.MaxCheckpoint {
		return fmt.Errorf("a checkpoint of %d bytes: want at most %d", n, store.MaxCheckpoint)
	}
	return nil
}

// Shortest and Longest limit a lease, both inclusive. The shortest is short
// because a lost holder of the same machine is not worth a longer wait; the
// longest is Azure's.
const (
	Shortest = time.Second
	Longest  = time.Minute
)
