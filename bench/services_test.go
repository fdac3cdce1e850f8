//go:build linux

package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestCallsAreCountedByKind(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer service.Close()
	p, err := startProxy(service.URL + "/account")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
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
		r, err := http.NewRequest(c.method, "http://"+p.Address+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("x-ms-lease-action", c.action)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		want[c.kind]++
	}
	got := p.Of("box")
	for _, kind := range callKinds {
		if got[kind] != want[kind] {
			t.Errorf("%s: got %d, want %d", kind, got[kind], want[kind])
		}
	}
	if len(p.Of("another")) > 0 {
		t.Error("another container has calls too")
	}
}
