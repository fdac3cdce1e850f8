package sim

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/soloist-go/soloist/store"
)

// A reader decodes what encoding/json does, whatever stands in a record.
func TestReader(t *testing.T) {
	const head = `{"schema":1,"job":"j","token":7,"run":{"status":"failed"},"counts":{"failed":3},"history":`
	var r reader
	for _, text := range []string{
		head + `[{"status":"failed","token":6},{"status":"missed","reason":"late"}]}`,
		head + `[{"status":"stalled","token":7},{"status":"failed","token":6},{"status":"missed","reason":"late"}]}`,
		head + `[{"status":"failed","reason":"a},{b"},{"status":"missed","reason":",\"history\":[{\"}]}"}]}`,
		head + `[{"status":"failed"}],"later":[{"status":"missed"},{"a":{"b":1}},{"status":"failed"}]}`,
		head + `[{"status":"failed"}],"history":[{"status":"missed"}]}`,
		head + `[{"status":"failed"}`, head + `[{"status":7}]}`, head + `[{]}`, head + `[]}`, head + `null}`,
		`{,"history":[{"status":"failed"}]}`, `{"History":[{"token":5}],"history":[{"status":"failed"}]}`,
		`{"error":",\"history\":[{\"}]}"}`, `{"status":"idle"}`, `,"history":[{}]}`, `{}`, `null`, `[]`, `"`, ``,
	} {
		want := new(store.Record)
		if json.Unmarshal([]byte(text), want) != nil {
			want = nil
		}
		for range 2 { // from its memory, too
			if got := r.record(text); !reflect.DeepEqual(got, want) {
				t.Errorf("%s\ngot  %+v\nwant %+v", text, got, want)
			}
		}
	}
}
