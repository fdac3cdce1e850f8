package local

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/soloist-go/soloist/store"
)

// Append implements [store.Appender]. A log "app/.log/job/part" is the file
// <Path>/app/.log/job/part.log: what was appended, with a line before each part. If the machine loses power during a
// call, all of the part is there or nothing.
func (d Dir) Append(ctx context.Context, name string, size int64, b []byte) error {
	path, err := d.logFile(ctx, name)
	if err = cmp.Or(err, checkAppend(b)); err == nil {
		err = d.append(path, size, b)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = store.ErrChanged
	}
	if err != nil {
		return fmt.Errorf("append to %q: %w", name, explain(err))
	}
	return nil
}

func (d Dir) append(path string, size int64, b []byte) error {
	if size == 0 {
		if err := d.createLog(path); err != nil {
			return err
		}
	}
	f, err := d.disk.extend(path)
	if err != nil {
		return err
	}
	nonce := rand.Text()
	text, err := d.disk.reread(f)
	if err == nil && unframe(text, "").size != size {
		err = store.ErrChanged
	}
	if err == nil {
		err = d.disk.append(f, frame(size, b, nonce))
	}
	if err == nil {
		text, err = d.disk.reread(f)
	}
	if err == nil && !unframe(text, nonce).won {
		err = store.ErrChanged
	}
	return errors.Join(err, f.Close())
}

// createLog makes an empty file if there is none, and the directories above it.
func (d Dir) createLog(path string) error {
	if there, err := d.disk.exists(path); there || err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := d.makeDir(dir); err != nil {
		return err
	}
	if err := d.disk.write(path, nil); !errors.Is(err, fs.ErrExist) && err != nil {
		return err
	}
	return d.disk.sync(dir)
}

// ReadLog implements [store.Appender].
func (d Dir) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	path, err := d.logFile(ctx, name)
	var text []byte
	if err == nil {
		text, err = d.disk.read(path, math.MaxInt64)
	}
	if err != nil {
		return nil, fmt.Errorf("read log %q: %w", name, explain(err))
	}
	l := unframe(text, "")
	return l.bytes(offset, n), nil
}

// Logs implements [store.Appender]. It costs a read of each log.
func (d Dir) Logs(ctx context.Context, entry string, f func(name string, size int64) bool) error {
	if d.Path == "" {
		return errNoPath
	}
	dir := filepath.Join(d.Path, filepath.FromSlash(store.LogName(entry, "")))
	files, err := d.disk.list(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explain(err)
	}
	slices.SortFunc(files, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, file := range files {
		part, ok := strings.CutSuffix(file.Name(), ".log")
		name := store.LogName(entry, part)
		if !ok || checkLog(ctx, name) != nil { // it is no log
			continue
		}
		text, err := d.disk.read(filepath.Join(dir, file.Name()), math.MaxInt64)
		if err == nil && !f(name, unframe(text, "").size) {
			break
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // unless it was removed meanwhile
			return explain(err)
		}
	}
	return ctx.Err()
}

// RemoveLog implements [store.Appender].
func (d Dir) RemoveLog(ctx context.Context, name string) error {
	path, err := d.logFile(ctx, name)
	if err == nil {
		err = d.disk.unlink(path)
	}
	if err != nil {
		return fmt.Errorf("remove log %q: %w", name, explain(err))
	}
	return nil
}

// logFile returns the path of a log.
func (d Dir) logFile(ctx context.Context, name string) (string, error) {
	if err := checkLog(ctx, name); err != nil {
		return "", err
	}
	if d.Path == "" {
		return "", errNoPath
	}
	return filepath.Join(d.Path, filepath.FromSlash(name)+".log"), nil
}

// The file of a log is a sequence of frames, each written by one append:
//
//	#SIZE LENGTH SUM NONCE
//	...what was appended...
//
// SIZE is the size of the log that the writer had seen. Of several frames with one size, the first in the file counts,
// and the others were never appended. So the order in the file decides who was faster, no writer waits for
// another, and a frame that a stopped process writes late does nothing if others have gone on.
//
// What a writer leaves that dies in the midst, or for which the disk has no room, has another sum, and is skipped.

// A frames is a log, as its file has it.
type frames struct {
	parts [][]byte
	size  int64
	won   bool // the frame with the nonce that was asked for counts
}

func frame(size int64, b []byte, nonce string) []byte {
	return append(fmt.Appendf(nil, "#%d %d %08x %s\n", size, len(b), sum(size, nonce, b), nonce), b...)
}

func sum(size int64, nonce string, b []byte) uint32 {
	return crc32.Update(crc32.Checksum(fmt.Append(nil, size, nonce), castagnoli), castagnoli, b)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// unframe reads the file of a log.
func unframe(text []byte, nonce string) (l frames) {
	for from := 0; from < len(text); {
		size, by, part, n := parse(text[from:])
		if n == 0 {
			from = seek(text, from)
			continue
		}
		if size == l.size {
			l.parts, l.size = append(l.parts, part), l.size+int64(len(part))
			l.won = l.won || by == nonce
		}
		from += n
	}
	return l
}

// seek returns where the next frame may begin.
func seek(text []byte, from int) int {
	if next := bytes.IndexByte(text[from+1:], '#'); next >= 0 {
		return from + 1 + next
	}
	return len(text)
}

// longestHead is longer than the first line of any frame.
const longestHead = 100

// parse reads the frame at the beginning of a text, and returns how long it is; zero: there is none.
func parse(text []byte) (size int64, nonce string, part []byte, n int) {
	line, _, whole := strings.Cut(string(text[:min(len(text), longestHead)]), "\n")
	word := strings.Split(line, " ")
	if !whole || len(word) != 4 || !strings.HasPrefix(line, "#") {
		return 0, "", nil, 0
	}
	size, err1 := strconv.ParseInt(word[0][1:], 10, 64)
	length, err2 := strconv.ParseUint(word[1], 10, 31)
	want, err3 := strconv.ParseUint(word[2], 16, 32)
	end := len(line) + 1 + int(length)
	if err1 != nil || err2 != nil || err3 != nil || end > len(text) {
		return 0, "", nil, 0
	}
	part = text[len(line)+1 : end]
	if length == 0 || uint32(want) != sum(size, word[3], part) {
		return 0, "", nil, 0
	}
	return size, word[3], part, end
}

// bytes returns up to n bytes of the log, from offset on.
func (l *frames) bytes(offset int64, n int) []byte {
	b := make([]byte, 0, max(0, min(int64(n), l.size-offset)))
	for _, part := range l.parts {
		skip := min(offset, int64(len(part)))
		offset -= skip
		part = part[skip:]
		b = append(b, part[:min(len(part), n-len(b))]...)
	}
	return b
}
