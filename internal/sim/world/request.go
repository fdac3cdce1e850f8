package world

import (
	"context"
	"net/http"

	"github.com/soloist-go/soloist/internal/blobtest"
)

// box is the container of all entries.
const Container = "soloist"

// A Sender takes a request to the service and its answer back.
type Sender func(context.Context, *blobtest.Request) (Reply, error)

// Parts of a request.
const (
	LeaseID   = "x-ms-lease-id"
	IfMatch   = "if-match"
	NoneMatch = "if-none-match"
	MetaKey   = "x-ms-meta-record"
	BlobType  = "x-ms-blob-type"
	BlockBlob = "BlockBlob"
)

// A Reply is an answer as it comes back.
type Reply struct {
	blobtest.Answer
	cutOff bool           // its body, if it has one, cannot be read to its end
	raw    *http.Response // what a script has made of it; nil: nothing
}
