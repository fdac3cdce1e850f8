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

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

func TestDirLayout(t *testing.T) {
	d := local.Dir{Path: filepath.Join(t.TempDir(), "made", "by", "create")}
	wantError(t, "read", errOf(d.Read(t.Context(), "app/job")), fs.ErrNotExist)
	wantError(t, "a directory made by a read", errOf(os.Stat(d.Path)), fs.ErrNotExist)
	create(t, d, "app/job")
	wantError(t, "read of another name", errOf(d.Read(t.Context(), "app/typo")), fs.ErrNotExist)
	if got, want := files(t, d.Path+"/app"), "job.d"; got != want {
		t.Errorf("files: got %s, want %s", got, want)
	}
	wantFiles(t, d, "1.json")
	if _, err := (local.Dir{}).Create(t.Context(), "app/job", []byte("x")); err == nil || !strings.Contains(err.Error(), "no Path") {
		t.Errorf("without a Path: got %v, want it said", err)
	}
}

// A program that knows no checkpoints would drop one, so a file that has one is of another schema.
func TestDirSchema(t *testing.T) {
	d := local.Dir{Path: t.TempDir()}
	l, etag := held(t, d, local.Longest)
	for _, c := range []struct{ checkpoint, want string }{{"y", `{"schema":2,`}, {"", `{"schema":1,`}} {
		r, err := save(t, l, etag, "x", c.checkpoint)
		etag = r.ETag
		if text, _ := os.ReadFile(current(t, d)); err != nil || !strings.HasPrefix(string(text), c.want) {
			t.Errorf("checkpoint %q: got %s, %v", c.checkpoint, text, err)
		}
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

// place is the directory of app/job.
func place(d local.Dir) string { return filepath.Join(d.Path, "app", "job.d") }

// wantFiles checks what the directory of app/job has, without the random parts of names.
func wantFiles(t *testing.T, d local.Dir, want string) {
	t.Helper()
	var names []string
	for name := range strings.FieldsSeq(files(t, place(d))) {
		part := strings.Split(name, ".")
		names = append(names, part[0]+"."+part[len(part)-1])
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("files: got %s, want %s", got, want)
	}
}

// current is the file that has app/job as it is, if that is the only one.
func current(t *testing.T, d local.Dir) string {
	t.Helper()
	name := files(t, place(d))
	if strings.Contains(name, " ") {
		t.Fatalf("there are %s, want one file", name)
	}
	return filepath.Join(place(d), name)
}

// What a process leaves that died before it could link its temporary file: whole,
// torn or not even a file of ours. The entry is as before, and the next update
// clears it away.
func TestDirDiedBeforeLink(t *testing.T) {
	for what, left := range map[string]string{"empty": "", "torn": `{"schema":1,"ent`, "garbage": "\x00\xff"} {
		t.Run(what, func(t *testing.T) {
			d := local.Dir{Path: t.TempDir()}
			e := create(t, d, "app/job")
			temp := strings.Replace(strings.TrimSuffix(current(t, d), "json"), "job.d/1.", "job.d/2.", 1) + "NONCE.tmp"
			if err := os.WriteFile(temp, []byte(left), 0o400); err != nil {
				t.Fatal(err)
			}
			got, err := d.Read(t.Context(), "app/job")
			if err != nil || got.ETag != e.ETag {
				t.Fatalf("read: got %v, %v, want the entry as before", got, err)
			}
			acquire(t, d.Lease("app/job", id1), local.Shortest, e.ETag)
			wantFiles(t, d, "2.json")
		})
	}
}

// What is left of an append in which a process died is not in the log, and the next append follows it.
func TestDirDiedInAppend(t *testing.T) {
	d := local.Dir{Path: t.TempDir()}
	path := filepath.Join(d.Path, filepath.FromSlash(logName)+".log")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, path, "x#0 4 00000000 torn\n#")
	wantError(t, "append", d.Append(t.Context(), logName, 1, []byte("late")), store.ErrChanged)
	if err := d.Append(t.Context(), logName, 0, []byte("whole")); err != nil {
		t.Fatal(err)
	}
	if got, err := d.ReadLog(t.Context(), logName, 0, 100); err != nil || string(got) != "whole" {
		t.Errorf("the log has %q, %v", got, err)
	}
}

// A file that somebody has put there is in the way only when the directory has to go.
func TestDirForeignFile(t *testing.T) {
	d := local.Dir{Path: t.TempDir()}
	e := create(t, d, "app/job")
	foreign := filepath.Join(place(d), "notes.txt")
	put(t, foreign, "x")
	acquire(t, d.Lease("app/job", id1), local.Shortest, e.ETag)
	if err := errors.Join(d.Lease("app/job", id1).Release(t.Context()), d.Remove(t.Context(), "app/job", e.ETag)); err != nil {
		t.Fatal(err)
	}
	_, err := d.Create(t.Context(), "app/job", []byte("x"))
	wantRefusal(t, "create", err)
	if err != nil && !strings.Contains(err.Error(), foreign+" is none of the store's files: move it away") {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
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
			path := current(t, d)
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
