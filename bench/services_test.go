//go:build linux

package main

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestCallsAreCountedByKind(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer service.Close()
	p, err := newProxy(service.URL + "/account")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for _, c := range []struct{ method, path, action, kind string }{
		{"PUT", "/account/box/app/job?comp=lease", "acquire", "acquire"},
		{"PUT", "/account/box/app/job?comp=lease", "acquire", "acquire"},
		{"PUT", "/account/box/app/job?comp=lease", "renew", "renew"},
		{"PUT", "/account/box/app/job?comp=lease", "release", "release"},
		{"PUT", "/account/box/app/job?comp=lease", "break", "other"},
		{"HEAD", "/account/box/app/job", "", "read"},
		{"PUT", "/account/box/app/job?comp=metadata", "", "metadata"},
		{"GET", "/account/box?restype=container&comp=list", "", "list"},
		{"GET", "/account/box/app/orders", "", "document"},
		{"PUT", "/account/box/app/orders", "", "document"},
		{"PUT", "/account/box?restype=container", "", "other"},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		r.Header.Set("x-ms-lease-action", c.action)
		p.ServeHTTP(httptest.NewRecorder(), r)
		want[c.kind]++
	}
	if got := p.Of("box"); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(p.Of("another")) > 0 {
		t.Error("another container has calls too")
	}
}
