package fencing_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/soloist-go/soloist/examples/fencing"
	"github.com/soloist-go/soloist/internal/azurite"
)

// blobResource is a blob in Azurite whose accepted writes are noted.
type blobResource struct {
	client *blockblob.Client
	before func() // called before a write is sent

	mu     sync.Mutex
	writes map[string]blobWrite // by the ETag of the version that was replaced
	first  blobWrite            // made the blob
	count  int
}

type blobWrite struct {
	token int64
	etag  string // of the new version
}

// openBlob makes a container of that name for it.
func openBlob(t *testing.T, server *azurite.Server, name string) *blobResource {
	t.Helper()
	cred, err := blob.NewSharedKeyCredential(azurite.Account, azurite.Key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := container.NewClientWithSharedKeyCredential(server.URL+"/"+name, cred, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	r := &blobResource{writes: map[string]blobWrite{}}
	r.client, err = blockblob.NewClientWithSharedKeyCredential(server.URL+"/"+name+"/sales", cred, &blockblob.ClientOptions{
		ClientOptions: azcore.ClientOptions{PerRetryPolicies: []policy.Policy{r}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Do implements [policy.Policy].
func (r *blobResource) Do(req *policy.Request) (*http.Response, error) {
	if req.Raw().Method != http.MethodPut {
		return req.Next()
	}
	if r.before != nil {
		r.before()
	}
	resp, err := req.Next()
	if err != nil || resp.StatusCode != http.StatusCreated {
		return resp, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	write := blobWrite{etag: resp.Header.Get("ETag")}
	for key, values := range req.Raw().Header { // Get would not find a key in small letters
		if strings.EqualFold(key, "x-ms-meta-soloisttoken") {
			write.token, _ = strconv.ParseInt(values[0], 10, 64)
		}
	}
	if replaced := req.Raw().Header.Get("If-Match"); replaced != "" {
		r.writes[replaced] = write
	} else {
		r.first = write
	}
	return resp, nil
}

func (r *blobResource) write(token int64) error {
	return fencing.WriteBlob(context.Background(), r.client, token, fmt.Append(nil, "by ", token))
}

func (r *blobResource) resource() resource { return resource{r.write, r.effects} }

// effects follows the ETags: each write names the version that it replaced. One
// that is not on this way was not conditional.
func (r *blobResource) effects(t *testing.T) (tokens []int64) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for write, ok := r.first, true; ok; write, ok = r.writes[write.etag] {
		tokens = append(tokens, write.token)
	}
	if len(tokens) != r.count {
		t.Errorf("%d of %d writes are not conditional on the one before", r.count-len(tokens), r.count)
	}
	return tokens
}

func (r *blobResource) content(t *testing.T) string {
	t.Helper()
	resp, err := r.client.DownloadStream(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestBlob(t *testing.T) {
	server := azurite.Start(t)
	for name, test := range map[string]func(*testing.T, *blobResource){
		"race": testBlobRace, "pause": testBlobPause, "foreign": testBlobForeign,
	} {
		t.Run(name, func(t *testing.T) { test(t, openBlob(t, server, name)) })
	}
}

func testBlobRace(t *testing.T, r *blobResource) {
	const rounds = 50
	checkRace(t, rounds, r.resource())
	if got, want := r.content(t), fmt.Sprint("by ", 2*rounds); got != want {
		t.Errorf("the blob is %q, want %q", got, want)
	}
}

// A runner that stands still between its look at the token and its write does
// not overwrite what came meanwhile, neither a first blob nor a later one.
func testBlobPause(t *testing.T, r *blobResource) {
	for token := int64(1); token < 6; token += 2 {
		r.before = func() {
			r.before = nil
			if err := r.write(token + 1); err != nil {
				t.Error(err)
			}
		}
		if err := r.write(token); !errors.Is(err, fencing.ErrStale) {
			t.Errorf("got %v, want ErrStale", err)
		}
		if got, want := r.content(t), fmt.Sprint("by ", token+1); got != want {
			t.Errorf("the blob is %q, want %q", got, want)
		}
	}
}

// A blob without a token is taken as one that no run has written; one whose
// token cannot be read is left alone.
func testBlobForeign(t *testing.T, r *blobResource) {
	upload := func(metadata map[string]*string) {
		t.Helper()
		body := streaming.NopCloser(strings.NewReader("foreign"))
		if _, err := r.client.Upload(t.Context(), body, &blockblob.UploadOptions{Metadata: metadata}); err != nil {
			t.Fatal(err)
		}
	}
	upload(nil)
	if err := r.write(1); err != nil {
		t.Errorf("no token: %v", err)
	}
	upload(map[string]*string{"SoloistToken": new("7")})
	if err := r.write(6); !errors.Is(err, fencing.ErrStale) {
		t.Errorf("token 7 under a key in other letters: got %v, want ErrStale", err)
	}
	upload(map[string]*string{"soloisttoken": new("seven")})
	if err := r.write(8); err == nil || errors.Is(err, fencing.ErrStale) {
		t.Errorf("token seven: got %v", err)
	}
}

// transport answers requests in the service's place.
type transport func(*http.Request) (*http.Response, error)

func (f transport) Do(r *http.Request) (*http.Response, error) { return f(r) }

// A sign-in page answers any request with 200 and no ETag: nothing is written then.
func TestBlobIsNotWrittenWithoutETag(t *testing.T) {
	puts := 0
	client, err := blockblob.NewClientWithNoCredential("https://account.blob.core.windows.net/box/sales", &blockblob.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: transport(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPut {
				puts++
			}
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}}, Body: http.NoBody, Request: r}, nil
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := fencing.WriteBlob(t.Context(), client, 5, []byte("stale")); err == nil || errors.Is(err, fencing.ErrStale) || puts > 0 {
		t.Errorf("got %v and %d writes, want another error and none", err, puts)
	}
}
