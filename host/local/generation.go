package local

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/soloist-go/soloist/internal/safefile"
)

// A generation is one state of an entry. It is a file in the entry's directory that never changes:
//
//	app/job.d/7.LIFE.json          the seventh state
//	app/job.d/8.LIFE.NONCE.tmp     what somebody wants to become the eighth
//
// The highest generation is the entry as it is. A writer reads it, writes a temporary file, and links that to the
// name of the next generation: of all who do so from one generation, exactly one wins. So a process that stops
// anywhere blocks no other.
//
// When a stopped process wakes up, its link must not take effect if others went on meanwhile, even if they have
// removed the generation that its link would make. Three rules see to that:
//
//   - A writer makes its temporary file first, then checks that its generation is still the highest, then links.
//   - A process that removes old generations first lists the directory, with a higher generation there, and removes all
//     temporary files for generations up to that one. A file that is made after the listing fails its writer's
//     check, and a file that was made before cannot be linked any more.
//   - Generations are removed in their order. So if the next one is missing and this one is there, this one is the highest.
//
// An entry that is removed gets a last generation that says so, and then its directory goes. LIFE is drawn at random
// for each new entry, so no name returns, and what a process does late to a directory of that name does no harm.
type generation struct {
	dir  string // of the entry
	life string
	n    uint64 // zero: there is none
}

func (g generation) next() generation { g.n++; return g }

func (g generation) path() string {
	return filepath.Join(g.dir, fmt.Sprintf("%d.%s.json", g.n, g.life))
}

// temp is the name of a file that is to become this generation.
func (g generation) temp() string {
	return filepath.Join(g.dir, fmt.Sprintf("%d.%s.%s.tmp", g.n, g.life, rand.Text()))
}

// errBeaten is returned by a writer if another one was faster: it has changed nothing, and starts again.
var errBeaten = errors.New("another process was faster")

// beaten translates the errors of a file operation that another process has caused.
func beaten(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return errBeaten
	}
	return err
}

// A shelf is what a listing of an entry's directory has found.
type shelf struct {
	there bool         // the directory is
	all   []generation // the highest last
	temps []temp
	other string // the name of a file that is none of ours
}

// temp is a temporary file.
type temp struct {
	of   generation // what it is to become
	path string
}

func (s shelf) highest(dir string) generation {
	if len(s.all) == 0 {
		return generation{dir: dir}
	}
	return s.all[len(s.all)-1]
}

func (d Dir) list(dir string) (s shelf, err error) {
	files, err := d.disk.list(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	s.there = err == nil
	for _, f := range files {
		part := strings.Split(f.Name(), ".")
		n, bad := strconv.ParseUint(part[0], 10, 63)
		switch {
		case bad == nil && n > 0 && len(part) == 3 && part[2] == "json":
			s.all = append(s.all, generation{dir, part[1], n})
		case bad == nil && len(part) == 4 && part[3] == "tmp" && f.Type().IsRegular():
			s.temps = append(s.temps, temp{generation{dir, part[1], n}, filepath.Join(dir, f.Name())})
		default:
			s.other = f.Name()
		}
	}
	slices.SortFunc(s.all, func(a, b generation) int { return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.life, b.life)) })
	return s, err
}

// check reports whether g was the highest generation at some moment of the call, or there was none: otherwise errBeaten.
func (d Dir) check(g generation) error {
	if g.n == 0 {
		return nil
	}
	beyond, err := d.disk.exists(g.next().path())
	if err == nil && !beyond {
		var still bool
		if still, err = d.disk.exists(g.path()); still {
			return nil
		}
	}
	return cmp.Or(err, errBeaten)
}

// advance makes e the generation after g. errBeaten: g is not the highest one.
func (d Dir) advance(g generation, name string, e entry) error {
	text, err := fileOf(name, e)
	if err != nil {
		return err
	}
	dir, err := d.disk.open(g.dir) // a missing permission shows while nothing is changed
	if err != nil {
		return beaten(err)
	}
	temp := g.next().temp()
	err = d.disk.write(temp, text)
	if err == nil {
		err = d.check(g)
	}
	if err == nil {
		err = d.disk.link(temp, g.next().path())
	}
	if err != nil {
		d.disk.remove(temp) // as well as can be: it is harmless
		d.disk.flush(dir)
		return beaten(err)
	}
	if err := d.disk.flush(dir); err != nil {
		return unclear(g.next().path(), err)
	}
	d.tidy(g.next())
	return nil
}

// tidy removes what g has made useless. What it cannot remove is left to the next writer.
func (d Dir) tidy(g generation) {
	s, err := d.list(g.dir) // g is there or has been: see the rules of generation
	if err == nil {
		d.discard(s, func(old generation) bool { return old.life == g.life && old.n < g.n })
	}
}

// discard removes those generations of which old is true, after the temporary files for those and for the next one.
func (d Dir) discard(s shelf, old func(generation) bool) error {
	for _, t := range s.temps {
		t.of.n--
		if old(t.of) {
			if err := d.disk.remove(t.path); err != nil {
				return err
			}
		}
	}
	for _, g := range s.all {
		if old(g) {
			if err := d.disk.remove(g.path()); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin makes the first generation of a new entry: a directory with a file in it takes the name of the entry's
// directory, which only one can that has something in it. errBeaten: there is an entry.
func (d Dir) begin(name, dir string, e entry) error {
	text, err := fileOf(name, e)
	if err != nil {
		return err
	}
	above := filepath.Dir(dir)
	if err := errors.Join(d.makeDir(above), d.bury(name, dir)); err != nil {
		return err
	}
	up, err := d.disk.open(above)
	if err != nil {
		return beaten(err)
	}
	g := generation{dir + "." + rand.Text() + ".new", rand.Text(), 1}
	d.disk.at("mkdir", g.dir)
	_, err = safefile.Mkdir(g.dir)
	if err == nil {
		err = d.disk.write(g.path(), text)
	}
	if err == nil {
		err = d.disk.sync(g.dir)
	}
	if err == nil {
		err = d.disk.rename(g.dir, dir)
		if taken, _ := d.disk.exists(dir); taken && err != nil { // each system has an error of its own for this
			err = errBeaten
		}
	}
	if err != nil {
		d.disk.remove(g.path())
		d.disk.remove(g.dir)
		d.disk.flush(up)
		return beaten(err)
	}
	return unclear(dir, d.disk.flush(up))
}

// bury removes the directory of an entry that is gone: it has a last generation that says so, or only what a process
// that died in this function has left. The directory of an entry that is there stays.
func (d Dir) bury(name, dir string) error {
	s, err := d.list(dir)
	if err != nil || !s.there {
		return err
	}
	if last := s.highest(dir); last.n > 0 {
		if e, err := d.load(last, name); err != nil || e.exists() {
			return beaten(err)
		}
	}
	if s.other != "" {
		return fmt.Errorf("%s is none of the store's files: move it away", filepath.Join(dir, s.other))
	}
	err = d.discard(s, func(generation) bool { return true })
	if err == nil {
		err = d.disk.remove(dir)
	}
	if errors.Is(err, fs.ErrExist) { // somebody who will fail has made another temporary file
		return nil
	}
	return err
}
