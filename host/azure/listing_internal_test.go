package azure

import (
	"encoding/xml"
	"reflect"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// onePage is a page as the service writes it, from the name of the container on.
const onePage = `<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="https://a.blob.core.windows.net/" ContainerName="soloist">` +
	`<Prefix>app/</Prefix><Delimiter>/</Delimiter><Blobs><BlobPrefix><Name>app/.log/</Name></BlobPrefix><Blob><Name>app/a</Name><Properties>` +
	`<Creation-Time>Sun, 22 Nov 2026 12:00:00 GMT</Creation-Time><Last-Modified>Sun, 22 Nov 2026 12:00:00 GMT</Last-Modified><Etag>0x8DE</Etag>` +
	`<Content-Length>7</Content-Length><Content-Type /><Content-MD5>1B2M2Y8AsgTpgAmY7PhCfg==</Content-MD5><BlobType>BlockBlob</BlobType>` +
	`<LeaseStatus>locked</LeaseStatus><LeaseState>leased</LeaseState><ServerEncrypted>true</ServerEncrypted></Properties>` +
	`<Metadata><record>{"job":"a","note":"&lt;b&gt; &amp; \u00e9"}</record><Other>x</Other></Metadata><OrMetadata /></Blob>
	<Blob><Name>app/b</Name><Properties><Last-Modified>Sun, 22 Nov 2026 12:00:00 GMT</Last-Modified><Etag>0x8DF</Etag><Content-Length>0</Content-Length><LeaseState>available</LeaseState></Properties><Metadata /></Blob>` +
	`</Blobs><NextMarker>2!8</NextMarker></EnumerationResults>`

// same compares what a listing takes from a page with what the library decodes of it, and returns
// whether it takes anything.
func same(t *testing.T, text string) bool {
	t.Helper()
	blobs, rest, ok := split([]byte(text))
	var want, left container.ListBlobsHierarchySegmentResponse
	err := xml.Unmarshal([]byte(text), &want)
	if !ok || err != nil || want.Segment == nil { // it is no page
		return ok
	}
	if err := xml.Unmarshal(rest, &left); err != nil || want.Segment == nil || left.Segment == nil || len(left.Segment.BlobItems) > 0 || !reflect.DeepEqual(left.NextMarker, want.NextMarker) {
		t.Fatalf("left over is %s, %v", rest, err)
	}
	if len(blobs) != len(want.Segment.BlobItems) {
		t.Fatalf("got %d blobs, want %d of %s", len(blobs), len(want.Segment.BlobItems), text)
	}
	for i, item := range want.Segment.BlobItems {
		wanted, err := listed(item, nil)
		got, err2 := listed(blobs[i], nil)
		if err != nil || err2 != nil || *blobs[i].Name != *item.Name || !reflect.DeepEqual(got, wanted) {
			t.Fatalf("got %s %+v, %v\nwant %s %+v, %v", *blobs[i].Name, got, err2, *item.Name, wanted, err)
		}
	}
	return ok
}

// A page as the service writes it is read without the library. One that differs is left to it.
func TestPageIsReadAsTheLibraryDoes(t *testing.T) {
	for what, one := range map[string]struct {
		old, new string
		ok       bool
	}{
		"as it is":                       {"", "", true},
		"no metadata":                    {"<Metadata />", "", true},
		"quotation marks as references":  {`"job"`, "&quot;job&#34;", true},
		"no blobs":                       {onePage[strings.Index(onePage, "<BlobPrefix>"):strings.Index(onePage, "</Blobs>")], "", true},
		"metadata before the properties": {"<Name>app/b</Name>", "<Name>app/b</Name><Metadata><record>x</record></Metadata>", false},
		"a reference that is not known":  {`"job"`, "&#233;", false},
		"a reference without an end":     {`"job"`, "&amp", false},
		"CDATA":                          {`"job"`, "<![CDATA[<Blob>]]>", false},
		"a comment":                      {"<Blob><Name>app/b", "<!-- <Blob> --><Blob><Name>app/b", false},
		"an encoded name":                {"<Name>app/b", `<Name Encoded="true">app%2Fb`, false},
		"encrypted metadata":             {"<Metadata />", `<Metadata Encrypted="true"><x>y</x></Metadata>`, false},
		"no ETag":                        {"<Etag>0x8DF</Etag>", "", false},
		"two ETags":                      {"<Etag>0x8DF</Etag>", "<Etag>0x8DF</Etag><Etag>0x8DE</Etag>", false},
		"no state":                       {"<LeaseState>available</LeaseState>", "", false},
		"a length that is no number":     {"<Content-Length>0<", "<Content-Length>x<", false},
		"another line end":               {`"job"`, "\r\n", false},
		"an unknown element":             {"</Blobs>", "<Blub></Blub></Blobs>", false},
		"cut off":                        {"</Blobs><NextMarker>2!8</NextMarker></EnumerationResults>", "", false},
		"cut off in a blob":              {onePage[strings.Index(onePage, `"job"`):], "", false},
	} {
		t.Run(what, func(t *testing.T) {
			if got := same(t, strings.Replace(onePage, one.old, one.new, 1)); got != one.ok {
				t.Errorf("it is read without the library: %t", got)
			}
		})
	}
}

func FuzzPage(f *testing.F) {
	f.Add(onePage)
	f.Add(strings.Replace(onePage, `"job"`, "&quot;&#39;&apos;", 1))
	f.Add("<EnumerationResults><Blobs></Blobs><NextMarker /></EnumerationResults>")
	f.Fuzz(func(t *testing.T, text string) { same(t, text) })
}
