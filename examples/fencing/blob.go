package fencing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
)

// tokenKey is the name of the metadata. It has to be a C# identifier, so no
// hyphen.
const tokenKey = "soloisttoken"

// WriteBlob replaces content and metadata of a blob, or makes it, with the
// token in its metadata. ErrStale: a newer run has written it.
//
// The service cannot compare tokens, but it can compare ETags: the write carries the
// ETag of the version whose token was read. If another write came between, the
// service refuses it, and WriteBlob reads the new version.
//
// A write whose answer was lost is repeated by the client: it is the same
// content. All who write the blob have to do so by WriteBlob, since a plain
// upload erases the metadata. Do not delete the blob, since its token would go
// with it; empty it.
func WriteBlob(ctx context.Context, client *blockblob.Client, token int64, content []byte) error {
	for {
		largest, unchanged, err := readToken(ctx, client)
		if err != nil {
			return err
		}
		if token < largest {
			return ErrStale
		}
		_, err = client.Upload(ctx, streaming.NopCloser(bytes.NewReader(content)), &blockblob.UploadOptions{
			Metadata:         map[string]*string{tokenKey: new(strconv.FormatInt(token, 10))},
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: unchanged},
		})
		// Each of these says that another write came between, so one of the
		// writers always gets on. The 412s of a leased blob are errors.
		if !bloberror.HasCode(err, bloberror.ConditionNotMet, bloberror.BlobAlreadyExists) {
			return err
		}
	}
}

// readToken returns the token of a blob, zero if it has none, and the condition
// that the blob is still the same.
func readToken(ctx context.Context, client *blockblob.Client) (int64, *blob.ModifiedAccessConditions, error) {
	props, err := client.GetProperties(ctx, nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return 0, &blob.ModifiedAccessConditions{IfNoneMatch: new(azcore.ETagAny)}, nil
	}
	if err != nil {
		return 0, nil, err
	}
	if props.ETag == nil || *props.ETag == "" {
		// The write would be unconditional, and replace what a newer run has written.
		return 0, nil, errors.New("the answer has no ETag: it is not from the Blob service")
	}
	unchanged := &blob.ModifiedAccessConditions{IfMatch: props.ETag}
	for key, value := range props.Metadata {
		if !strings.EqualFold(key, tokenKey) { // HTTP headers have no case
			continue
		}
		token, err := strconv.ParseInt(*value, 10, 64)
		if err != nil {
			return 0, nil, fmt.Errorf("metadata %s: %w", tokenKey, err)
		}
		return token, unchanged, nil
	}
	return 0, unchanged, nil
}
