package azure

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

// A listing takes the blobs out of a page of a listing, before the client library decodes the
// page. At 10,000 jobs the library would spend most of the time of a refresh in encoding/xml. A
// page that differs from what the service writes goes to the library as it is.
type listing struct{ blobs []*container.BlobItem }

type listingKey struct{}

// take returns a context whose next answer gives its blobs to the listing.
func (l *listing) take(ctx context.Context) context.Context {
	return context.WithValue(ctx, listingKey{}, l)
}

// unpack reads the page of an answer and leaves in it what the listing does not take.
func (l *listing) unpack(resp *http.Response) (*http.Response, error) {
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	rest := text
	if blobs, others, ok := split(text); ok {
		l.blobs, rest = blobs, others
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(rest)), int64(len(rest))
	return resp, nil
}

// split returns the blobs of a page and the page without them. In a page nothing but a tag, a
// comment and the like has the character <; ok is false if there is anything but the tags that
// the service writes.
func split(text []byte) (blobs []*container.BlobItem, rest []byte, ok bool) {
	head, tail, ok := bytes.Cut(text, []byte("<Blobs>"))
	if !ok || !bytes.Contains(head, []byte("<EnumerationResults")) || bytes.Contains(text, []byte("<!")) {
		return nil, nil, false
	}
	for {
		tail = bytes.TrimLeft(tail, " \t\r\n")
		switch {
		case bytes.HasPrefix(tail, []byte("</Blobs>")):
			return blobs, bytes.Join([][]byte{head, tail}, []byte("<Blobs>")), true
		case bytes.HasPrefix(tail, []byte("<BlobPrefix>")):
			_, tail, ok = bytes.Cut(tail, []byte("</BlobPrefix>"))
		case bytes.HasPrefix(tail, []byte("<Blob>")):
			var one []byte
			var item *container.BlobItem
			if one, tail, ok = bytes.Cut(tail[len("<Blob>"):], []byte("</Blob>")); ok {
				item, ok = blobOf(one)
				blobs = append(blobs, item)
			}
		default:
			ok = false
		}
		if !ok {
			return nil, nil, false
		}
	}
}

// blobOf reads the content of an element Blob, as far as it is needed.
func blobOf(text []byte) (item *container.BlobItem, ok bool) {
	name, rest, named := element(bytes.TrimLeft(text, " \t\r\n"), "Name")
	before, rest, opened := bytes.Cut(rest, []byte("<Properties>"))
	properties, rest, closed := bytes.Cut(rest, []byte("</Properties>"))
	etag, tagged := within(properties, "Etag")
	state, leased := within(properties, "LeaseState")
	length, sized := within(properties, "Content-Length")
	n, err := strconv.ParseInt(length, 10, 64)
	if !named || !opened || !closed || !tagged || !leased || !sized || err != nil || bytes.Contains(before, []byte("<Metadata")) {
		return nil, false
	}
	item = &container.BlobItem{Name: &name, Properties: &container.BlobProperties{ETag: (*azcore.ETag)(&etag),
		LeaseState: (*lease.StateType)(&state), ContentLength: &n}}
	item.Metadata, ok = metadataIn(rest)
	return item, ok
}

// metadataIn reads the element Metadata, if there is one.
func metadataIn(text []byte) (all map[string]*string, ok bool) {
	_, text, found := bytes.Cut(text, []byte("<Metadata"))
	if !found || bytes.HasPrefix(text, []byte("/>")) || bytes.HasPrefix(text, []byte(" />")) {
		return nil, true
	}
	text, _, ok = bytes.Cut(text, []byte("</Metadata>"))
	if !ok || len(text) == 0 || text[0] != '>' {
		return nil, false
	}
	all = map[string]*string{}
	for text = bytes.TrimSpace(text[1:]); len(text) > 0; text = bytes.TrimSpace(text) {
		end := bytes.IndexByte(text, '>')
		if text[0] != '<' || end < 0 {
			return nil, false
		}
		name := string(text[1:end])
		var value string
		if value, text, ok = element(text, name); !ok || name == "" {
			return nil, false
		}
		all[name] = &value
	}
	return all, true
}

// within returns the text of the only element of that name in a text.
func within(text []byte, name string) (value string, ok bool) {
	i := bytes.Index(text, []byte("<"+name+">"))
	if i < 0 {
		return "", false
	}
	value, rest, ok := element(text[i:], name)
	return value, ok && !bytes.Contains(rest, []byte("<"+name))
}

// element returns the text of the element of that name with which a text begins, and what follows.
func element(text []byte, name string) (value string, rest []byte, ok bool) {
	begin, end := "<"+name+">", "</"+name+">"
	if !bytes.HasPrefix(text, []byte(begin)) {
		return "", nil, false
	}
	inner, rest, ok := bytes.Cut(text[len(begin):], []byte(end))
	if !ok || bytes.IndexByte(inner, '<') >= 0 || bytes.IndexByte(inner, '\r') >= 0 || !utf8.Valid(inner) {
		return "", nil, false
	}
	value, ok = unescape(string(inner))
	return value, rest, ok
}

// references are those that the service writes, and the decimal ones of the quotation marks.
var references = map[string]string{"amp": "&", "lt": "<", "gt": ">", "quot": `"`, "apos": "'", "#34": `"`, "#39": "'"}

// unescape puts characters in the place of references.
func unescape(text string) (plain string, ok bool) {
	before, rest, found := strings.Cut(text, "&")
	if !found {
		return text, true
	}
	b := make([]byte, 0, len(text))
	for ; found; before, rest, found = strings.Cut(rest, "&") {
		name, after, _ := strings.Cut(rest, ";")
		c, known := references[name]
		if !known {
			return "", false
		}
		b, rest = append(append(b, before...), c...), after
	}
	return string(append(b, before...)), true
}
