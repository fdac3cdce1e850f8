package local_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/filelock"
	"github.com/soloist-go/soloist/store"
)

func TestDirLayout(t *testing.T) {
	d := local.Dir{Path: filepath.Join(t.TempDir(), "made", "by", "create")}
	wantError(t, "read", errOf(d.Read(t.Context(), "app/job")), fs.ErrNotExist)
	wantError(t, "a directory made by a read", errOf(os.Stat(d.Path)), fs.ErrNotExist)
	create(t, d, "app/job")
	wantError(t, "read of another name", errOf(d.Read(t.Context(), "app/typo")), fs.ErrNotExist)
	if got, want := files(t, d.Path+"/app"), "job.json job.lock"; got != want {
		t.Errorf("files: got %s, want %s", got, want)
	}
	if _, err := (local.Dir{}).Create(t.Context(), "app/job", []byte("x")); err == nil || !strings.Contains(err.Error(), "no Path") {
		t.Errorf("without a Path: got %v, want it said", err)
	}
}

func files(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range list {
		names = append(names, f.Name())
	}
	return strings.Join(names, " ")
}

// What a process leaves that died before the rename: a temporary file, whole,
// torn or not even a file of ours. The entry is as before, and the next update
// clears it away.
func TestDirDiedBeforeRename(t *testing.T) {
	for what, left := range map[string]string{"empty": "", "torn": `{"schema":1,"ent`, "garbage": "\x00\xff"} {
		t.Run(what, func(t *testing.T) {
			d := local.Dir{Path: t.TempDir()}
			e := create(t, d, "app/job")
			path := filepath.Join(d.Path, "app", "job.json")
			if err := os.WriteFile(path+".tmp", []byte(left), 0o400); err != nil {
				t.Fatal(err)
			}
			got, err := d.Read(t.Context(), "app/job")
			if err != nil || got.ETag != e.ETag {
				t.Fatalf("read: got %v, %v, want the entry as before", got, err)
			}
			acquire(t, d.Lease("app/job", id1), local.Shortest, e.ETag)
			if got, want := files(t, d.Path+"/app"), "job.json job.lock"; got != want {
				t.Errorf("files after an update: got %s, want %s", got, want)
			}
		})
	}
}

// A process that died after making the directory, the lock or the temporary
// file of a new entry has not made the entry.
func TestDirDiedInCreate(t *testing.T) {
	d := local.Dir{Path: t.TempDir()}
	left := []string{"app", "app/job.lock", "app/job.json.tmp"}
	for i, name := range left {
		path := filepath.Join(d.Path, name)
		err := os.WriteFile(path, nil, 0o600)
		if i == 0 {
			err = errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		}
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, "read with "+name+" left", errOf(d.Read(t.Context(), "app/job")), fs.ErrNotExist)
	}
	create(t, d, "app/job")
}

// tooLong is a byte more than a checkpoint may have, as a file would hold it.
var tooLong = base64.StdEncoding.EncodeToString(make([]byte, store.MaxCheckpoint+1))

func TestDirGarbage(t *testing.T) {
	const good = `{"schema":1,"entry":"app/job","etag":"e","record":"r","lease":{"id":"` + id1 + `","length_ns":1000000000,"until":"2026-11-21T02:30:00Z"}}`
	for what, text := range map[string]string{
		"empty":         "",
		"torn":          good[:len(good)/2],
		"binary":        "\x00\xff\x00",
		"more behind":   good + good,
		"not an object": `[]`,
		"no schema":     strings.Replace(good, `"schema":1,`, "", 1),
		"newer schema":  strings.Replace(good, `"schema":1`, `"schema":3`, 1),
		"schema 0":      strings.Replace(good, `"schema":1`, `"schema":0`, 1),
		"other entry":   strings.Replace(good, "app/job", "app/old", 1),
		"no etag":       strings.Replace(good, `"etag":"e",`, "", 1),
		"no record":     strings.Replace(good, `"record":"r",`, "", 1),
		"bad lease id":  strings.Replace(good, id1, "me", 1),
		"no lease id":   strings.Replace(good, id1, "", 1),
		"endless lease": strings.Replace(good, "1000000000", "3600000000000", 1),
		"bad time":      strings.Replace(good, "2026-11", "2026-13", 1),
		"no base64":     strings.Replace(good, `"record"`, `"checkpoint":"\u00e9","record"`, 1),
		"checkpoint":    strings.Replace(good, `"record"`, `"checkpoint":"`+tooLong+`","record"`, 1),
	} {
		t.Run(what, func(t *testing.T) {
			d := local.Dir{Path: t.TempDir()}
			create(t, d, "app/job")
			path := filepath.Join(d.Path, "app", "job.json")
			put(t, path, text)
			for call, err := range each(t.Context(), d, "e") {
				wantRefusal(t, call, err)
				if err != nil && !strings.Contains(err.Error(), path) {
					t.Errorf("%s: got %v, want the file named", call, err)
				}
				if newer := strings.Contains(text, `"schema":3`); newer != strings.Contains(fmt.Sprint(err), "update the program") {
					t.Errorf("%s: got the advice %v", call, err)
				}
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != text {
				t.Errorf("after all calls: got %.200q, %v, want %.200q", got, err, text)
			}
			put(t, path, good) // the test's own idea of a good file
			wantState(t, "mended", d, store.Expired)
		})
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// each makes every call of a store on app/job.
func each(ctx context.Context, d local.Dir, etag string) map[string]error {
	l := d.Lease("app/job", id1)
	_, create := d.Create(ctx, "app/job", []byte("x"))
	_, read := d.Read(ctx, "app/job")
	_, acquire := l.Acquire(ctx, local.Shortest, etag)
	_, renew := l.Renew(ctx)
	_, write := l.Write(ctx, etag, []byte("x"))
	_, save := l.(store.Checkpointer).Save(ctx, etag, []byte("x"), []byte("y"))
	_, load := l.(store.Checkpointer).Load(ctx, etag)
	return map[string]error{
		"create": create, "read": read, "acquire": acquire, "renew": renew, "write": write, "save": save, "load": load,
		"release": l.Release(ctx), "break": d.Break(ctx, "app/job", 0),
		"break unchanged": d.BreakUnchanged(ctx, "app/job", etag),
	}
}

func TestDirIsFile(t *testing.T) {
	for _, file := range []string{"store", "store/app"} {
		d := local.Dir{Path: filepath.Join(t.TempDir(), "store")}
		path := filepath.Join(filepath.Dir(d.Path), file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, path, "")
		for call, err := range each(t.Context(), d, "e") {
			wantRefusal(t, call, err)
			if err != nil && !(strings.Contains(err.Error(), path) && strings.Contains(err.Error(), "move it away")) {
				t.Errorf("%s with a file at %s: got %v, want the path and what to do", call, file, err)
			}
		}
	}
}

// While a process is stopped in the instant of an update, the calls of others
// end with their contexts.
func TestDirLocked(t *testing.T) {
	d := local.Dir{Path: t.TempDir()}
	e := create(t, d, "app/job")
	synctest.Test(t, func(t *testing.T) {
		unlock, err := filelock.Lock(t.Context(), filepath.Join(d.Path, "app", "job.lock"))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for call, err := range each(ctx, d, e.ETag) {
			wantError(t, call, err, context.DeadlineExceeded)
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("took %v, want %v", took, time.Minute)
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
		acquire(t, d.Lease("app/job", id1), local.Shortest, e.ETag)
	})
}

// Somebody who empties the directory takes the entries, not the store.
func TestDirRemoved(t *testing.T) {
	d := local.Dir{Path: t.TempDir()}
	old := create(t, d, "app/job")
	if err := os.RemoveAll(filepath.Join(d.Path, "app")); err != nil {
		t.Fatal(err)
	}
	wantError(t, "read", errOf(d.Read(t.Context(), "app/job")), fs.ErrNotExist)
	if e := create(t, d, "app/job"); e.ETag == old.ETag {
		t.Errorf("made again: got the old ETag %s", e.ETag)
	}
}
