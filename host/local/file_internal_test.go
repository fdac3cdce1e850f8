package local

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

// An error that comes after the entry was replaced is none of those that say
// that nothing was changed.
func TestErrorAfterRenameIsUnclear(t *testing.T) {
	for _, cause := range []error{fs.ErrPermission, fs.ErrNotExist, fs.ErrExist} {
		err := unclear("app/job.json", &fs.PathError{Op: "sync", Path: "app", Err: cause})
		if errors.Is(err, cause) || !strings.Contains(err.Error(), "sync app: ") || !strings.Contains(err.Error(), "app/job.json is written") {
			t.Errorf("got %v", err)
		}
		if got := explain(err); got.Error() != err.Error() {
			t.Errorf("got %v, want no advice that says that nothing was changed", got)
		}
	}
	if err := unclear("app/job.json", nil); err != nil {
		t.Errorf("got %v", err)
	}
}

// What to do about it is part of an error of the file system.
func TestErrorsOfTheFileSystemHaveAdvice(t *testing.T) {
	for advice, err := range map[string]error{
		"make room": &fs.PathError{Op: "write", Err: diskFull}, "hard links": &os.LinkError{Op: "link", Err: syscall.EOPNOTSUPP},
		"the right to read and write": fs.ErrPermission, "mount it for writing": syscall.EROFS, "a file stands": syscall.ENOTDIR,
	} {
		if got := explain(err); !errors.Is(got, err) || !strings.Contains(got.Error(), advice) {
			t.Errorf("got %v, want the advice %q", got, advice)
		}
	}
}
