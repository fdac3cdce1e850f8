// Package web answers people, probes and programs over HTTP, and decides which
// requests are answered.
package web

import (
	"sync/atomic"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/past"
)

// pages answer what people, probes and programs ask over HTTP.
type pages struct {
	app       *app.App
	guard     *Guard
	cache     *Cache
	past      *past.Cache
	shelf     *lockShelf
	functions []string     // in Functions: what is deployed and is not what the jobs need
	streams   atomic.Int64 // that are open
}
