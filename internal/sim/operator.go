package sim

import (
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"net/http"
	"slices"
	"strings"
	"time"
)

const boxURL = "https://sim.blob.core.windows.net/soloist"

// operate ends leases and deletes entries.
func (c *Cluster) operate(d plannedFault) {
	if c.Store != nil {
		c.operateOn(c.Store, d)
		return
	}
	switch d.what {
	case "break":
		c.request("PUT", d.job, "?comp=lease", "x-ms-lease-action: break")
	case "break now":
		c.request("PUT", d.job, "?comp=lease", "x-ms-lease-action: break", "x-ms-lease-break-period: 0")
	case "delete container":
		if !c.foreign() {
			c.deleteContainer()
		}
	case "delete":
		if d.job == trace.Foreign {
			return
		}
		c.request("PUT", d.job, "?comp=lease", "x-ms-lease-action: break", "x-ms-lease-break-period: 0")
		if e := c.request("DELETE", d.job, ""); e.OK() {
			c.log.Add(trace.Event{What: trace.Deleted, Job: d.job})
		}
	}
}

// request is one of the operator.
func (c *Cluster) request(method, job, query string, headers ...string) *trace.Event {
	url := boxURL
	if job != "" {
		url += "/sim/" + job
	}
	r, err := http.NewRequest(method, url+query, nil)
	if err != nil {
		panic(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	req, err := blobtest.Parse(r)
	if err != nil {
		panic(err)
	}
	e := new(classifier).event(req, &c.net.records)
	e.What, e.Replica, e.Sent, e.Time = trace.Request, trace.Operator, time.Now(), time.Now()
	if e.Writes() {
		e.Op = "write"
	}
	one := c.log.Add(e)
	c.net.apply(one, req)
	return one
}

// foreign reports whether the entry of a newer program is there. It would not
// be again after a deletion of the container.
func (c *Cluster) foreign() bool {
	return c.Seed%20 == 0 && slices.ContainsFunc(c.Program, func(d trace.Definition) bool { return d.Name == trace.Foreign })
}

// plantForeign makes an entry of a newer program.
func (c *Cluster) plantForeign() {
	if c.Store != nil {
		c.plantForeignIn(c.Store)
		return
	}
	c.request("PUT", "", "?restype=container")
	c.request("PUT", trace.Foreign, "", "x-ms-blob-type: BlockBlob", "x-ms-meta-record: "+foreignRecord)
}

const foreignRecord = `{"schema":99,"app":"sim","job":"foreign","created":"1999-01-01T00:00:00Z","watermark":"1999-01-01T00:00:00Z","run":{"status":"idle"}}`
