package web

import (
	"bytes"
	"net/http"

	"github.com/soloist-go/soloist/host/internal/format"
)

// Reply writes the header after the body is known to be JSON: a client that gets
// an empty body with status 200 has no way to know that something is wrong.
func Reply(w http.ResponseWriter, code int, body any) {
	var text bytes.Buffer
	if err := format.WriteJSON(&text, body, ""); err != nil {
		http.Error(w, "the answer cannot be written as JSON: "+format.Line(err.Error()), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(text.Bytes())
}

// A problem is the answer to a request that is refused or fails.
type problem struct {
	Error string `json:"error"` // what is wrong, and what to do
}

// fail answers with what is wrong.
func fail(w http.ResponseWriter, code int, text string) { Reply(w, code, problem{format.Line(text)}) }
