package kubelease

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

func TestUpdateOfAnOldVersionConflicts(t *testing.T) {
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const path = "/apis/coordination.k8s.io/v1/namespaces/bench/leases"
	for _, c := range []struct {
		method, path, body string
		code               int
		version            string
	}{
		{"GET", "/one", "", 404, ""},
		{"PUT", "/one", `{"metadata":{"name":"one","resourceVersion":"1"}}`, 404, ""},
		{"POST", "", `{"metadata":{"name":"one"}}`, 201, "1"},
		{"POST", "", `{"metadata":{"name":"one"}}`, 409, ""},
		{"PUT", "/one", `{"metadata":{"name":"one","resourceVersion":"1"}}`, 200, "2"},
		{"PUT", "/one", `{"metadata":{"name":"one","resourceVersion":"1"}}`, 409, ""},
		{"PUT", "/one", `{"metadata":{"name":"one"}}`, 409, ""},
		{"PUT", "/one", `not JSON`, 400, ""},
		{"GET", "/one", "", 200, "2"},
	} {
		r, err := http.NewRequest(c.method, s.URL+path+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var o object
		err = json.NewDecoder(resp.Body).Decode(&o)
		resp.Body.Close()
		version, _ := o.metadata()["resourceVersion"].(string)
		if err != nil || resp.StatusCode != c.code || version != c.version {
			t.Errorf("%s %s %s: got %s, version %q, %v", c.method, c.path, c.body, resp.Status, version, err)
		}
	}
}
