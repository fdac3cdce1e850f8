package web

import "net/http"

// metrics answers with what Prometheus reads.
func (p *pages) metrics(w http.ResponseWriter, r *http.Request) { p.app.Telemetry.ServeHTTP(w, r) }
