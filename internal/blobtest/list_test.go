package blobtest_test

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"
)

// A listing has the blobs of a prefix in pages, with what is deeper as one prefix.
func TestList(t *testing.T) {
	s := newService(t)
	s.must("PUT", "box?restype=container")
	for _, name := range []string{"a/one", "a/two", "a/.log/x/1", "a/.log/x/2", "a/three", "b/one", "a/zero/1"} {
		s.must("PUT", "box/"+name, "x-ms-blob-type: BlockBlob", "x-ms-meta-record: <"+name+">")
	}
	for query, want := range map[string]string{
		"":                       "a/.log/x/1 a/.log/x/2 a/one a/three a/two a/zero/1 b/one",
		"&prefix=a/&delimiter=/": "a/one a/three a/two [a/.log/ a/zero/]",
		"&prefix=a/&delimiter=/&include=metadata": "a/one=<a/one> a/three=<a/three> a/two=<a/two> [a/.log/ a/zero/]",
		"&prefix=b&maxresults=1":                  "b/one",
		"&prefix=a/&maxresults=2":                 "a/.log/x/1 a/.log/x/2; a/one a/three; a/two a/zero/1",
		"&prefix=a/&delimiter=/&maxresults=2":     "a/one [a/.log/]; a/three a/two; [a/zero/]",
		"&prefix=c":                               "",
	} {
		if got := s.pages(query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

// pages reads a listing to its end.
func (s *service) pages(query string) string {
	var all []string
	for marker := ""; ; {
		resp := s.must("GET", "box?restype=container&comp=list"+query+"&marker="+marker)
		text, _ := io.ReadAll(resp.Body)
		var page struct {
			Blobs []struct {
				Name     string
				Metadata *struct {
					Record string `xml:"record"`
				}
			} `xml:"Blobs>Blob"`
			Prefixes   []string `xml:"Blobs>BlobPrefix>Name"`
			NextMarker string
		}
		if err := xml.Unmarshal(text, &page); err != nil {
			s.t.Fatalf("%v in %s", err, text)
		}
		var names []string
		for _, b := range page.Blobs {
			if b.Metadata != nil {
				b.Name += "=" + b.Metadata.Record
			}
			names = append(names, b.Name)
		}
		if len(page.Prefixes) > 0 {
			names = append(names, fmt.Sprint(page.Prefixes))
		}
		all = append(all, strings.Join(names, " "))
		if marker = page.NextMarker; marker == "" {
			return strings.Join(all, "; ")
		}
	}
}
