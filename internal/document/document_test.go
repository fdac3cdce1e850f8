package document_test

import (
	"context"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/document"
	"github.com/soloist-go/soloist/store"
)

// A gateway answers in the place of the store.
type gateway struct{ *local.Memory }

func (gateway) ReadDocument(context.Context, string, string) (store.Document, error) {
	return store.Document{Body: []byte("sign in")}, nil
}

func (gateway) WriteDocument(context.Context, string, string, []byte) (store.Revision, error) {
	return store.Revision{}, nil
}

// A success without an ETag is not from the store: nothing may be read from it, and nothing rely on what may not be written.
func TestAnswersOfAGateway(t *testing.T) {
	d := document.Document{Store: gateway{&local.Memory{}}, Name: "app/.document", Limit: time.Second}
	if got, err := d.Read(t.Context(), ""); err == nil {
		t.Errorf("it reads %q", got.Body)
	}
	if _, err := d.Write(t.Context(), "", []byte("x")); err == nil {
		t.Error("it counts as written")
	}
}

func TestMissingDocument(t *testing.T) {
	d := document.Document{Store: &local.Memory{}, Name: "app/.document", Limit: time.Second}
	if got, err := d.Read(t.Context(), ""); err != nil || got.ETag != "" || got.Body != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := d.Write(t.Context(), "", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Read(t.Context(), ""); err != nil || got.ETag == "" || string(got.Body) != "x" {
		t.Errorf("got %+v, %v", got, err)
	}
}
