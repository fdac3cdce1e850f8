package sim

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// operate ends leases and deletes entries.
func (c *Cluster) operate(d draw.PlannedFault) {
	switch d.What {
	case "break":
		c.request("break", d.Job)
	case "break now":
		c.breakNow(d.Job)
	case "delete container":
		if !c.foreign() && c.Store == nil {
			c.deleteContainer()
		}
	case "delete":
		if d.Job == trace.Foreign {
			return
		}
		c.breakNow(d.Job)
		if e := c.request("delete", d.Job); e.OK() {
			c.log.Add(trace.Event{What: trace.Deleted, Job: d.Job})
		}
	}
}

func (c *Cluster) breakNow(job string) { c.request("break", job, "x-ms-lease-break-period", "0") }

// request has an operator do something at once: an operator has no network. Its headers are pairs
// of a name and a value.
func (c *Cluster) request(op, job string, headers ...string) *trace.Event {
	if job != "" {
		job = "sim/" + job
	}
	r := blobtest.NewRequest(op, world.Container, job, nil, headers...)
	e := c.log.Add(c.byOperator(new(world.Classifier), r))
	c.net.Apply(e, r)
	return e
}

// byOperator is the event of an operator's request.
func (c *Cluster) byOperator(t *world.Classifier, r *blobtest.Request) trace.Event {
	e := t.Event(r)
	e.What, e.Replica, e.Sent, e.Time = trace.Request, trace.Operator, time.Now(), time.Now()
	if e.Writes() {
		e.Op = "write"
	}
	return e
}

// foreign reports whether the entry of a newer program is there. It would not
// be again after a deletion of the container.
func (c *Cluster) foreign() bool {
	return c.Seed%20 == 0 && slices.ContainsFunc(c.Program, func(d trace.Definition) bool { return d.Name == trace.Foreign })
}

// plantForeign makes an entry of a newer program.
func (c *Cluster) plantForeign() {
	c.request("create container", "")
	c.request("put", trace.Foreign, world.NoneMatch, "*", world.BlobType, world.BlockBlob, world.MetaKey, foreignRecord)
}

const foreignRecord = `{"schema":99,"app":"sim","job":"foreign","created":"1999-01-01T00:00:00Z","watermark":"1999-01-01T00:00:00Z","run":{"status":"idle"}}`

// deleteContainer deletes the entries of all jobs with it. Its name is refused
// for half a minute.
func (c *Cluster) deleteContainer() {
	if e := c.request("delete container", ""); !e.OK() {
		return
	}
	c.log.Add(trace.Event{What: trace.Deleted, Note: "container"})
	names := append(draw.Entries(c.locks), draw.SlotsOfGroup(c.Program)...)
	for _, d := range c.Program {
		names = append(names, d.Name)
	}
	c.log.Edit(func() { names = append(names, slices.Sorted(maps.Keys(c.log.Onces))...) })
	for _, name := range names {
		c.log.Add(trace.Event{What: trace.Request, Replica: trace.Operator, Job: name, Op: "delete", Status: http.StatusAccepted, Sent: time.Now()})
		c.log.Add(trace.Event{What: trace.Deleted, Job: name})
	}
}
