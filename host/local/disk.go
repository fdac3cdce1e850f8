package local

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/soloist-go/soloist/internal/safefile"
)

// disk does the file operations of a Dir, one by one. No operation waits for another process, and none is done
// under a lock: a process that stops before, in or after any of them holds up no other one.
type disk struct {
	before func(op, path string) // for tests: called before each operation; nil: nothing is
}

func (d disk) at(op, path string) {
	if d.before != nil {
		d.before(op, path)
	}
}

func (d disk) list(path string) ([]fs.DirEntry, error) {
	d.at("list", path)
	return safefile.List(path)
}

// read returns what a regular file has, up to so many bytes.
func (d disk) read(path string, most int64) ([]byte, error) {
	d.at("read", path)
	f, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, most)
}

// readAll returns what a file has, up to so many bytes.
func readAll(f *os.File, most int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(make([]byte, 0, min(info.Size(), most)+bytes.MinRead)) // room to see the end
	_, err = b.ReadFrom(io.NewSectionReader(f, 0, most))
	return b.Bytes(), err
}

func (d disk) exists(path string) (bool, error) {
	d.at("look", path)
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// write makes a file, complete on the disk when it returns.
func (d disk) write(path string, text []byte) error {
	d.at("create", path)
	f, err := safefile.Create(path)
	if err != nil {
		return err
	}
	d.at("write", path)
	_, err = f.Write(text)
	if err == nil {
		d.at("sync", path)
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// extend opens a file that append is for.
func (d disk) extend(path string) (*os.File, error) {
	d.at("open", path)
	if err := safefile.Regular(path); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_APPEND|safefile.Flags, 0)
}

// append adds a text to the end of a file, by one write. It is on the disk when append returns.
func (d disk) append(f *os.File, text []byte) error {
	d.at("append", f.Name())
	_, err := f.Write(text)
	if err == nil {
		d.at("sync", f.Name())
		err = f.Sync()
	}
	return err
}

// reread returns what a file has that is open.
func (d disk) reread(f *os.File) ([]byte, error) {
	d.at("read", f.Name())
	return readAll(f, math.MaxInt64)
}

// link gives a file a second name. fs.ErrExist: that name is taken.
func (d disk) link(from, to string) error {
	d.at("link", to)
	return os.Link(from, to)
}

func (d disk) rename(from, to string) error {
	d.at("rename", to)
	return os.Rename(from, to)
}

// unlink removes a file or an empty directory.
func (d disk) unlink(path string) error {
	d.at("remove", path)
	return os.Remove(path)
}

// remove is unlink of what need not be there.
func (d disk) remove(path string) error {
	if err := d.unlink(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// open opens a directory for flush.
func (d disk) open(path string) (*os.File, error) {
	d.at("open", path)
	return openDir(path)
}

// flush makes the names in a directory outlast a loss of power, and closes it.
func (d disk) flush(dir *os.File) error {
	d.at("flush", "")
	return flush(dir)
}

// sync is open and flush.
func (d disk) sync(path string) error {
	dir, err := d.open(path)
	if err != nil {
		return err
	}
	return d.flush(dir)
}
