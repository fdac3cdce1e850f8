package web

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"strings"
)

// The page is one document for all paths, with nothing in it that comes from a job.
//
//go:embed page.html
var pageText string

//go:embed page.css
var pageCSS string

//go:embed strip.css
var stripCSS string

//go:embed page.js
var pageJS string

//go:embed strip.js
var stripJS string

// pageStyle and pageScript are of all parts of the page.
var pageStyle, pageScript = pageCSS + stripCSS, stripJS + pageJS

// document is the page with its style and its script.
var document = strings.NewReplacer("/*STYLE*/", pageStyle, "/*SCRIPT*/", pageScript).Replace(pageText)

// policy allows that style and that script alone, by their hashes, and requests to this
// server alone. No script may make markup from text.
var policy = strings.Join([]string{"default-src 'none'", "style-src " + hashed(pageStyle), "script-src " + hashed(pageScript), "connect-src 'self'", "img-src data:",
	"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"}, "; ")

// hashed is a source of the policy (https://www.w3.org/TR/CSP3/#grammardef-hash-source).
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// page answers with the document.
func page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", policy)
	w.Write([]byte(document))
}
