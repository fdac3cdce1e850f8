package blobtest

import (
	"bytes"
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// maxPage is how many blobs and prefixes a page of a listing has at most
// (https://learn.microsoft.com/rest/api/storageservices/list-blobs).
const maxPage = 5000

// A page is the answer to List Blobs, as far as it is modelled.
type page struct {
	XMLName    xml.Name   `xml:"EnumerationResults"`
	Container  string     `xml:"ContainerName,attr"`
	Prefix     string     `xml:",omitempty"`
	Marker     string     `xml:",omitempty"`
	Delimiter  string     `xml:",omitempty"`
	Blobs      []listed   `xml:"Blobs>Blob"`
	Prefixes   []prefixed `xml:"Blobs>BlobPrefix"`
	NextMarker string
}

type prefixed struct{ Name string }

type listed struct {
	Name       string
	Properties struct {
		CreationTime string `xml:"Creation-Time"`
		LastModified string `xml:"Last-Modified"`
		Etag         string
		Length       int    `xml:"Content-Length"`
		MediaType    string `xml:"Content-Type"`
		BlobType     string
		LeaseStatus  string
		LeaseState   string
	}
	Metadata *metadataXML `xml:",omitempty"`
}

// metadataXML has an element for each name.
type metadataXML map[string]string

func (m metadataXML) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	if err := e.EncodeToken(start); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if err := e.EncodeElement(m[name], xml.StartElement{Name: xml.Name{Local: name}}); err != nil {
			return err
		}
	}
	return e.EncodeToken(start.End())
}

// list does List Blobs with prefix, delimiter, marker, maxresults and include=metadata.
func (b *Blob) list(r *Request) Answer {
	c, _ := b.find(r)
	if c == nil {
		return refuse("ContainerNotFound")
	}
	if r.HTTP == nil {
		return c.entries(r)
	}
	query := r.HTTP.URL.Query()
	most, err := strconv.Atoi(query.Get("maxresults"))
	if query.Has("maxresults") && (err != nil || most < 1) || !slices.Contains([]string{"", "metadata"}, query.Get("include")) {
		return refuse("OutOfRangeQueryParameterValue")
	}
	if most == 0 || most > maxPage {
		most = maxPage
	}
	p := page{Container: r.container, Prefix: query.Get("prefix"), Marker: query.Get("marker"), Delimiter: query.Get("delimiter")}
	for _, name := range slices.Sorted(maps.Keys(c.blobs)) {
		whole, deeper := cut(name, p.Prefix, p.Delimiter)
		switch n := len(p.Prefixes); {
		case !strings.HasPrefix(name, p.Prefix) || whole < p.Marker:
		case deeper && n > 0 && p.Prefixes[n-1].Name == whole: // it is on this page already
		case len(p.Blobs)+n == most:
			p.NextMarker = whole
			return p.answer()
		case deeper:
			p.Prefixes = append(p.Prefixes, prefixed{whole})
		default:
			p.Blobs = append(p.Blobs, c.blobs[name].listed(r, name, query.Get("include") == "metadata"))
		}
	}
	return p.answer()
}

// cut returns a name up to the first delimiter after the prefix, if there is one.
func cut(name, prefix, delimiter string) (whole string, deeper bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if i := strings.Index(rest, delimiter); ok && delimiter != "" && i >= 0 {
		return prefix + rest[:i+len(delimiter)], true
	}
	return name, false
}

// listed is what a page shows of a blob. ETags have no quotation marks there.
func (o *object) listed(r *Request, name string, metadata bool) listed {
	o.lease.settle(r.now)
	h := read(r, o).Header
	l := listed{Name: name}
	p := &l.Properties
	p.CreationTime, p.LastModified, p.Etag = h.Get("X-Ms-Creation-Time"), h.Get("Last-Modified"), strings.Trim(o.etag, `"`)
	p.Length, p.MediaType, p.BlobType = len(o.body), o.mediaType, h.Get("X-Ms-Blob-Type")
	p.LeaseStatus, p.LeaseState = h.Get("X-Ms-Lease-Status"), h.Get("X-Ms-Lease-State")
	if metadata {
		m := metadataXML(o.meta)
		l.Metadata = &m
	}
	return l
}

func (p *page) answer() Answer {
	a := accept(http.StatusOK)
	a.Header.Set("Content-Type", "application/xml")
	a.text = p.text
	return a
}

func (p *page) text() []byte {
	var text bytes.Buffer
	text.WriteString("\ufeff" + xml.Header)
	if err := xml.NewEncoder(&text).Encode(p); err != nil {
		panic(err) // names and values come from headers and paths
	}
	return text.Bytes()
}

// entries has all blobs directly below the prefix, which ends with a slash.
func (c *container) entries(r *Request) Answer {
	a := accept(http.StatusOK)
	for _, name := range slices.Sorted(maps.Keys(c.blobs)) {
		if rest, ok := strings.CutPrefix(name, r.Blob); ok && !strings.Contains(rest, "/") {
			o := c.blobs[name]
			o.lease.settle(r.now)
			one := read(r, o)
			one.Date = r.now
			a.Entries = append(a.Entries, Entry{name, one})
		}
	}
	return a
}
