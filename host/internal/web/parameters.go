package web

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/soloist-go/soloist/host/internal/format"
)

// parameters returns the parameters of a request, each of which may be there once. What cannot be parsed is an
// error: if it were ignored, the answer would show everything instead of what was asked for.
func parameters(r *http.Request) (map[string]string, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("the parameters cannot be read: %w", err)
	}
	once := map[string]string{}
	for name, all := range values {
		if len(all) > 1 {
			return nil, fmt.Errorf("the parameter %s is there %d times: want it once", format.Brief(name), len(all))
		}
		once[name] = all[0]
	}
	return once, nil
}
