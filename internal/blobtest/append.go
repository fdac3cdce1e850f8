package blobtest

import (
	"fmt"
	"net/http"
	"strconv"
)

// MaxBlocks is how many blocks an append blob takes
// (https://learn.microsoft.com/rest/api/storageservices/append-block).
const MaxBlocks = 50_000

// append does Append Block, with the condition on the position.
func (b *Blob) append(r *Request, o *object) Answer {
	position, at := r.Header["x-ms-blob-condition-appendpos"], int64(len(o.body))
	switch {
	case o.kind != "AppendBlob":
		return refuse("InvalidBlobType")
	case len(r.Body) == 0:
		return refuse("InvalidHeaderValue")
	case position != "" && position != strconv.FormatInt(at, 10):
		return refuse("AppendPositionConditionNotMet")
	case o.blocks == MaxBlocks:
		return refuse("BlockCountExceedsLimit")
	}
	o.body = append(o.body, r.Body...)
	o.blocks++
	b.touch(r, o)
	a := accept(http.StatusCreated).of(o)
	a.Header.Set("X-Ms-Blob-Append-Offset", strconv.FormatInt(at, 10))
	a.Header.Set("X-Ms-Blob-Committed-Block-Count", strconv.Itoa(o.blocks))
	return a
}

// part cuts the content to a range, "bytes=FIRST-LAST" or "bytes=FIRST-".
func (a *Answer) part(text string) (code string) {
	if text == "" {
		return ""
	}
	size := len(a.Body)
	first, last := 0, size-1
	n, _ := fmt.Sscanf(text, "bytes=%d-%d", &first, &last)
	switch {
	case n == 0 || first < 0:
		return "InvalidHeaderValue"
	case first >= size:
		return "InvalidRange"
	}
	last = min(last, size-1)
	a.Body, a.Status = a.Body[first:last+1], http.StatusPartialContent
	a.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, size))
	return ""
}
