package record

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
)

// fill gives all fields of a value random contents: zero now and then, or if a field is turned
// off, and text that JSON has to escape.
func fill(v reflect.Value, r *rand.Rand) {
	if r.IntN(5) == 0 {
		return
	}
	texts := []string{"a", " b  c   ", `"\<&>`, "é€🦊", "\x00\x1f\x7f\b\f\n\r\t", "\xff\u2028\u2029\ufffd", "  "}
	switch v.Interface().(type) {
	case time.Time:
		zone := time.FixedZone("", (r.IntN(24)-12)*3600)
		v.Set(reflect.ValueOf(time.Unix(r.Int64N(4e9), r.Int64N(2)*r.Int64N(1e9)).In([]*time.Location{time.UTC, zone}[r.IntN(2)])))
		return
	case Seconds:
		v.SetInt(r.Int64N(100) * int64(time.Second) / (1 + r.Int64N(3)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), r)
			}
		}
	case reflect.String:
		v.SetString(texts[r.IntN(len(texts))] + texts[r.IntN(len(texts))])
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64() - 1<<62)
		if v.Kind() == reflect.Int {
			v.SetInt(r.Int64N(1e6))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		for i := range v.Len() {
			fill(v.Index(i), r)
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[event.Status]int64{event.Failed: 3, event.Abandoned: r.Int64(), event.Succeeded: 1}))
	default:
		panic("fill does not know " + v.Type().String())
	}
}

// A record is appended to the same bytes as package json makes of it: no field is left out, and
// none has another name or place.
func TestAppendedRecordIsThatOfPackageJSON(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		var r Record
		fill(reflect.ValueOf(&r).Elem(), random)
		b, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		want := string(ascii(b))
		got, ok := r.appendJSON(nil)
		if !ok || string(got) != want {
			t.Fatalf("got  %s, %t\nwant %s", got, ok, want)
		}
	}
}

// What is appended is read as package json reads it. What is read of anything else is what package
// json reads, too.
func TestReadRecordIsThatOfPackageJSON(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	read := 0
	compare := func(b []byte, must bool) {
		var got Record
		version, ok := got.readJSON(b)
		if !ok {
			if must {
				t.Fatalf("not read: %s", b)
			}
			return
		}
		read++
		type plain Record
		var want struct {
			Schema int
			plain
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if err := d.Decode(&want); err != nil || version != want.Schema || d.InputOffset() != int64(len(b)) || !reflect.DeepEqual(got, Record(want.plain)) {
			t.Fatalf("%s\ngot  %+v\nwant %+v, %v", b, got, want, err)
		}
	}
	const bytesOfInterest = `{}[],:"\0123456789-+.eEtnfalse `
	for range 500 {
		var r Record
		fill(reflect.ValueOf(&r).Elem(), random)
		b, _ := r.appendJSON(nil)
		compare(b, true)
		for range 30 {
			c := slices.Clone(b)
			switch i := random.IntN(len(c)); random.IntN(3) {
			case 0:
				c = slices.Delete(c, i, min(len(c), i+1+random.IntN(8)))
			case 1:
				c[i] = bytesOfInterest[random.IntN(len(bytesOfInterest))]
			default:
				c = slices.Insert(c, i, bytesOfInterest[random.IntN(len(bytesOfInterest))])
			}
			compare(c, false)
		}
	}
	if read < 2000 {
		t.Errorf("only %d were read", read)
	}
}

// What cannot be appended goes through package json, which says why.
func TestRecordThatCannotBeAppended(t *testing.T) {
	r := sample()
	r.History[0].End = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, ok := r.appendJSON(nil); ok {
		t.Error("an instant is appended that JSON cannot write")
	}
	if b, err := r.Encode(); err == nil {
		t.Errorf("it is encoded to %s", b)
	}
}

// Records are encoded twice a tick for each job.
func BenchmarkEncode(b *testing.B) {
	r := sample()
	for len(r.History) < maxHistory {
		r.History = append(r.History, r.History[0])
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}

// The names in counts come from the record that was read, and nothing checks them.
func TestNamesOfCounts(t *testing.T) {
	for _, name := range []event.Status{`a"b`, "gezählt", `back\slash`} {
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		r := Record{App: "a", Job: "j", Created: at, Watermark: at, Token: 1, Run: Run{Status: Idle}, Counts: map[event.Status]int64{name: 1}}
		in, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(in, "a", "j")
		if err != nil {
			t.Errorf("%s is refused: %v", name, err)
			continue
		}
		out, err := got.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(out) {
			t.Errorf("%s is written as no JSON: %s", name, out)
		}
		for _, c := range out {
			if c >= 0x7f {
				t.Errorf("%s is not written in ASCII: %s", name, out)
				break
			}
		}
	}
}
