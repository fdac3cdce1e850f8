package record

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
)

// A replica reads and writes the record of each job several times a tick, and package json takes
// longer for that than all that decides what to write. So a record goes through a codec, both ways, in
// the order of its fields and by their tags, in the bytes that package json makes of it, except what must
// be ASCII.

// A member is a field of a struct, as its tag has it.
type member struct {
	name   string
	index  int
	always bool // it is there whatever it holds
	empty  bool // it is a list that is left out if it is empty; otherwise what is zero is left out
	visit  visitor
}

// A visitor writes or reads a value.
type visitor func(c *codec, v reflect.Value)

// members of a record.
var members = membersOf(reflect.TypeFor[Record]())

func membersOf(t reflect.Type) (all []member) {
	for f := range t.Fields() {
		if name, option, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			all = append(all, member{name, f.Index[0], option == "", option == "omitempty", visitorOf(f.Type)})
		}
	}
	return all
}

func visitorOf(t reflect.Type) visitor {
	switch t {
	case reflect.TypeFor[time.Time]():
		return func(c *codec, v reflect.Value) { c.instant(v.Addr().Interface().(*time.Time)) }
	case reflect.TypeFor[Seconds]():
		return func(c *codec, v reflect.Value) { c.seconds(v.Addr().Interface().(*Seconds)) }
	}
	switch t.Kind() {
	case reflect.String:
		return (*codec).text
	case reflect.Bool:
		return (*codec).flag
	case reflect.Map:
		return func(c *codec, v reflect.Value) { c.counts(v.Addr().Interface().(*map[event.Status]int64)) }
	case reflect.Slice:
		item := visitorOf(t.Elem())
		return func(c *codec, v reflect.Value) { list(c, v, item) }
	case reflect.Struct:
		fields := membersOf(t)
		return func(c *codec, v reflect.Value) { c.inside('{', '}', func() { visitAll(c, fields, v) }) }
	}
	return (*codec).number
}

// appendJSON appends the record as JSON in ASCII. It returns false if that is not possible: the
// record has an instant that JSON cannot write, or fields of a newer program.
func (r *Record) appendJSON(b []byte) ([]byte, bool) {
	if len(r.unknown) > 0 {
		return b, false
	}
	c := codec{b: b}
	goThrough(r, &c, schema)
	return c.b, c.err == nil
}

// readJSON reads what appendJSON writes, and the version of its schema. It returns false for
// anything else, which package json has to read.
func (r *Record) readJSON(b []byte) (version int, ok bool) {
	c := codec{b: b, reads: true}
	version = goThrough(r, &c, 0)
	return version, c.err == nil && c.at == len(b)
}

// goThrough goes through a record and the version of its schema, which it returns.
func goThrough(r *Record, c *codec, version int) int {
	c.inside('{', '}', func() {
		if c.must("schema") {
			c.number(reflect.ValueOf(&version).Elem())
			visitAll(c, members, reflect.ValueOf(r).Elem())
		}
	})
	return version
}

// must writes the name of a member that is there in any case, or reads it.
func (c *codec) must(name string) bool {
	if !c.reads {
		c.name(name)
		return true
	}
	ok := c.readName(name)
	if !ok && c.err == nil {
		c.err = errOther
	}
	return ok
}

// visitAll goes through the fields of a struct.
func visitAll(c *codec, all []member, of reflect.Value) {
	for i := range all {
		m := &all[i]
		v := of.Field(m.index)
		switch {
		case m.always:
			if !c.must(m.name) {
				return
			}
		case c.reads && !c.readName(m.name):
			continue
		case c.reads:
		case m.empty && v.Len() == 0, !m.empty && isZero(v):
			continue
		default:
			c.name(m.name)
		}
		m.visit(c, v)
	}
}

// isZero reports whether package json leaves a value out: the zero instant may be one of any location.
func isZero(v reflect.Value) bool {
	if at, ok := reflect.TypeAssert[*time.Time](v.Addr()); ok {
		return at.IsZero()
	}
	return v.IsZero()
}

// list goes through an array.
func list(c *codec, v reflect.Value, item visitor) {
	c.inside('[', ']', func() {
		if !c.reads {
			for i := range v.Len() {
				if i > 0 {
					c.b = append(c.b, ',')
				}
				item(c, v.Index(i))
			}
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 0, (len(c.b)-c.at)/200+1))
		for n := 0; c.err == nil && c.at < len(c.b) && c.b[c.at] != ']'; n++ {
			if n > 0 {
				c.expect(',')
			}
			v.Grow(1)
			v.SetLen(n + 1)
			v.Index(n).SetZero()
			item(c, v.Index(n))
		}
	})
}

var errUnknownCount = errors.New("the record counts a status that this program does not know")

// counts goes through numbers by their names.
func (c *codec) counts(of *map[event.Status]int64) {
	c.inside('{', '}', func() {
		if c.reads {
			*of = map[event.Status]int64{}
			for c.err == nil && c.at < len(c.b) && c.b[c.at] != '}' {
				if len(*of) > 0 {
					c.expect(',')
				}
				name, n := string(c.token()), int64(0)
				c.expect(':')
				if c.err == nil {
					c.number(reflect.ValueOf(&n).Elem())
					(*of)[event.Status(strings.Trim(name, `"`))] = n
				}
			}
			return
		}
		for _, s := range slices.Sorted(maps.Keys(*of)) {
			if !known(s) { // its name may have to be escaped
				c.err = errUnknownCount
			}
			n := (*of)[s]
			c.name(string(s))
			c.number(reflect.ValueOf(&n).Elem())
		}
	})
}
