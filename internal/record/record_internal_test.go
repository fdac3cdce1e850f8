package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

func sample() Record {
	at := time.Date(2026, 11, 21, 2, 30, 0, 0, time.UTC)
	return Record{App: "app", Job: "job", Created: at, Definition: Definition{Spec: "abc", Since: at}, Token: 7, Writer: "w",
		Watermark: at, Run: Run{Tick: at, Attempt: 2, Status: event.Failed, Replica: "replica-1", Lease: Seconds(15 * time.Second),
			Claimed: at.Add(250 * time.Millisecond), Finished: at.Add(time.Second), Error: "oh"}, Counts: map[event.Status]int64{event.Failed: 3},
		History: []event.Outcome{{Tick: at, Status: event.Failed, Reason: "oh", Attempt: 2, Token: 7, Replica: "replica-1"}}}
}

func TestARecordSurvivesARewrite(t *testing.T) {
	want := sample()
	b, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	b = append(bytes.TrimSuffix(b, []byte("}")), `,"later":{"a":[1,2.50]}}`...)
	got, err := Decode(b, "app", "job")
	if err != nil {
		t.Fatal(err)
	}
	again, err := got.Encode()
	if err != nil || !strings.Contains(string(again), `"later":{"a":[1,2.50]}`) {
		t.Errorf("got %s, %v: the unknown field is gone", again, err)
	}
	got.unknown = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestARecordFitsIntoAHeader(t *testing.T) {
	if all := store.MaxRecord + len("record"); all > 8<<10 { // the limit counts names too
		t.Errorf("the longest record makes %d bytes of metadata, and Azure takes 8 KiB", all)
	}
	for name, text := range map[string]string{
		"accents": strings.Repeat("é", 9000), "emoji": strings.Repeat("🦊", 9000), "controls": strings.Repeat("\x00\x7f\r\n", 9000),
		"broken": strings.Repeat("\xff", 9000), "spaces": strings.Repeat(" ", 9000), "quotes": strings.Repeat(`"\<&>`, 9000), "empty": "",
	} {
		r := sample()
		r.Run.Error, r.Run.Progress.Note, r.Run.Replica = text, text, cut(text, 60)
		for i := range 500 {
			tick := r.Run.Tick.Add(time.Duration(i) * time.Second)
			f := event.Outcome{Tick: tick, Status: event.Failed, Reason: text, Replica: cut(text, 60)}
			r.History, r.Watermark = slices.Insert(r.History, 0, f), tick
		}
		b, err := r.Encode()
		if err != nil || len(b) > store.MaxRecord || len(b) < 100 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
		if i := bytes.IndexFunc(b, func(c rune) bool { return c < ' ' || c > '~' }); i >= 0 {
			t.Errorf("%s: byte %q at %d", name, b[i], i)
		}
		if bytes.Contains(b, []byte("  ")) {
			t.Errorf("%s: two spaces in a row", name)
		}
		got, err := Decode(b, "app", "job")
		if err != nil || len(got.History) == 0 || !got.History[0].Tick.Equal(r.Watermark) {
			t.Errorf("%s: the newest outcome is lost: %v", name, err)
		}
	}
}

// Texts are cut before one of fifteen outcomes is lost, and only as far as needed.
func TestLongTextsCostNoneOfFifteenOutcomes(t *testing.T) {
	for _, text := range []string{strings.Repeat("é", 500), strings.Repeat("🦊", 500), strings.Repeat("\x00", 500), strings.Repeat("<a>", 200), "失败了"} {
		r := sample()
		r.Run.Error, r.Run.Progress.Note = text, text
		for i := range 20 {
			r.History = slices.Insert(r.History, 0, event.Outcome{Tick: r.Watermark.Add(time.Duration(i) * time.Second), Status: event.Failed, Reason: text,
				Attempt: 1, Token: MaxToken, Replica: "replica-1234567890", Start: r.Created, End: r.Created.Add(time.Millisecond)})
		}
		before := slices.Clone(r.History)
		copied := r.Clone()
		_, err := copied.Encode()
		if n := len(copied.History); err != nil || n < kept {
			t.Errorf("%.9q: %d outcomes are left, %v", text, n, err)
		}
		if n := len([]rune(copied.History[0].Reason)); n < min(6, len([]rune(text))) {
			t.Errorf("%.9q: %d characters are left of a reason", text, n)
		}
		if !reflect.DeepEqual(r.History, before) {
			t.Errorf("%.9q: what a record shares with its copy has changed", text)
		}
	}
}

// A reason has 500 characters. Where not all have room, the newest have them and the older ones 100, before anything else is cut.
func TestNewestReasonsAreLongest(t *testing.T) {
	for n, want := range map[int]int{1: 1, 5: 5, 20: 5} {
		r := sample()
		r.History = nil
		for i := range n {
			r.History = append(r.History, event.Outcome{Tick: r.Watermark.Add(time.Duration(-i) * time.Second), Status: event.Failed, Reason: strings.Repeat("no paper ", 60),
				Attempt: 1, Token: int64(i + 1), Replica: "replica-a", Start: r.Created, End: r.Created.Add(time.Millisecond)})
		}
		if _, err := r.Encode(); err != nil {
			t.Fatal(err)
		}
		var lengths []int
		for _, o := range r.History {
			lengths = append(lengths, len(o.Reason))
		}
		whole := slices.Index(append(lengths, fewReasonLen), fewReasonLen)
		if len(lengths) != n || whole < want || slices.ContainsFunc(lengths[:whole], func(k int) bool { return k != maxReasonLen }) || slices.ContainsFunc(lengths[whole:], func(k int) bool { return k != fewReasonLen }) {
			t.Errorf("%d reasons have %d characters, want %d with %d", n, lengths, want, maxReasonLen)
		}
	}
}

// Runs by hand leave the newest ticks five of twenty places, and take the rest. A record that is too long for twenty outcomes
// has fifteen.
func TestRunsByHandLeaveTheNewestTicks(t *testing.T) {
	long := strings.Repeat("ж", 100)
	for _, c := range []struct {
		ticks, byHand, wantTicks, wantAll int
		reason                            string
	}{{20, 0, 20, 20, "x"}, {0, 99, 0, 20, "x"}, {20, 3, 17, 20, "x"}, {20, 16, 5, 20, "x"}, {20, 99, 5, 20, "x"}, {2, 99, 2, 20, "x"},
		{20, 20, 5, kept, long}} {
		r := sample()
		r.History = nil
		for i := range c.ticks + c.byHand {
			o := event.Outcome{Tick: r.Watermark.Add(time.Duration(i) * time.Second), Status: event.Failed, Reason: strings.Repeat(c.reason, 60),
				Attempt: 1, Token: int64(i + 1), Replica: "myapp-deployment-7d9f8b6c5d-x2k4p", Start: r.Created, End: r.Created.Add(time.Millisecond)}
			if i >= c.ticks {
				o.Request = fmt.Sprint("ordered-20261128-120000-abcde", i)
			}
			r.History = slices.Insert(r.History, 0, o)
			shared := slices.Clone(r.History)
			copied := r.Clone()
			if _, err := copied.Encode(); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(r.History, shared) {
				t.Fatal("what a record shares with its copy has changed")
			}
			r = copied
		}
		var want []int64 // tokens
		for i := range c.wantAll - c.wantTicks {
			want = append(want, int64(c.ticks+c.byHand-i))
		}
		for i := range c.wantTicks {
			want = append(want, int64(c.ticks-i))
		}
		var got []int64
		for _, o := range r.History {
			got = append(got, o.Token)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d ticks and %d by hand: got %v, want %v", c.ticks, c.byHand, got, want)
		}
	}
}

func TestUnknownFieldsThatDoNotFitAreNotDropped(t *testing.T) {
	r := sample()
	big, _ := json.Marshal(strings.Repeat("x", store.MaxRecord))
	r.unknown = map[string]json.RawMessage{"later": big}
	if _, err := r.Encode(); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("got %v", err)
	}
}

func TestSecondsComeBackAsTheyWere(t *testing.T) {
	for _, want := range []time.Duration{0, 1, 15 * time.Second, 16002 * time.Millisecond, 33983221566} {
		b, err := json.Marshal(Seconds(want))
		var got Seconds
		if err == nil {
			err = json.Unmarshal(b, &got)
		}
		if err != nil || time.Duration(got) != want {
			t.Errorf("%s became %s, %s, %v", want, b, time.Duration(got), err)
		}
	}
}

// Whatever stands in a blob is decoded or refused; what is decoded can be
// written, and reads the same.
func FuzzDecode(f *testing.F) {
	r := sample()
	b, _ := r.Encode()
	f.Add(b)
	f.Add([]byte(`{"schema":1,"run":{"lease":-1}}`))
	f.Add([]byte(`null`))
	f.Add(bytes.Replace(b, []byte(`{`), []byte(`{"\u017ftatus":"idle","EPOCH":3,"\u212aind":1,`), 1)) // names are matched as JSON does
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b, "app", "job")
		if err != nil {
			return
		}
		out, err := r.Encode()
		if err != nil {
			return // too long
		}
		again, err := Decode(out, "app", "job")
		if err != nil {
			t.Fatalf("%s\nbecame %s: %v", b, out, err)
		}
		if fmt.Sprint(again.Run.Tick.UTC(), again.Token, again.Run.Status) != fmt.Sprint(r.Run.Tick.UTC(), r.Token, r.Run.Status) {
			t.Errorf("%s\nbecame %s", b, out)
		}
		if twice, err := again.Encode(); err != nil || !bytes.Equal(twice, out) {
			t.Errorf("%s\nbecame %s, %v", out, twice, err)
		}
	})
}

// An instant beyond the year 9999 in UTC can be read in another zone and written in no answer. One beyond that year in its own
// zone can be written nowhere.
func TestARecordOfTheYear10000IsRefused(t *testing.T) {
	beyond := sample()
	beyond.History[0].End = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	if b, err := beyond.Encode(); err == nil {
		t.Errorf("it is encoded to %s", b)
	}
	far := time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))
	for name, set := range map[string]func(r *Record){
		"of the record": func(r *Record) { r.Created = far }, "of a run": func(r *Record) { r.Run.Progress.At = far },
		"of an outcome": func(r *Record) { r.History[0].End = far }, "of none": func(*Record) {},
	} {
		r := sample()
		set(&r)
		b, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		_, err = Decode(b, "app", "job")
		if name == "of none" && err != nil || name != "of none" && !strings.Contains(fmt.Sprint(err), "want the years 1 to 9999") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAnUnknownStatusInTheHistoryIsRefused(t *testing.T) {
	r := sample()
	r.History = append(r.History, event.Outcome{Tick: r.Run.Tick, Status: "\x1b[2J"})
	b, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err = Decode(b, "app", "job"); err == nil || !strings.Contains(err.Error(), `the history of the record has the unknown status "\x1b[2J"`) {
		t.Errorf("got %v, want a word on the status", err)
	}
}

func TestAControlDocumentThatIsTooLarge(t *testing.T) {
	c := Control{App: "app", Seq: 1, Audit: []Order{{Reason: strings.Repeat("x", store.MaxDocument)}}}
	if _, err := c.Encode(); err == nil {
		t.Error("it is encoded")
	}
}
