// Empty is what a cold start is compared with: an HTTP server that has the client library of the
// Blob service, and does nothing with it.
package main

import (
	"fmt"
	"net/http"
	"os"

	"github.com/soloist-go/soloist/bench/internal/blob"
)

func main() {
	http.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" { // so that the library is linked
			if _, err := blob.Open(r.Context(), r.URL.RawQuery, "none"); err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
			}
		}
	})
	fmt.Fprintln(os.Stderr, http.ListenAndServe(os.Getenv("SOLOIST_ADDR"), nil))
	os.Exit(1)
}
