//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/host/postgres"
	"github.com/soloist-go/soloist/internal/blobtest"
	server "github.com/soloist-go/soloist/internal/postgres"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/internal/sim/world"
	"github.com/soloist-go/soloist/proof/chaos/line"
	"github.com/soloist-go/soloist/store"
)

// A database is a PostgreSQL that can be killed, at any moment. A trigger notes each change of an entry in the
// transaction that makes it, so what is committed is noted, in the order of the changes of each entry, and nothing else.
type database struct {
	server *server.Server
	lines  []*line.Line
	loses  bool // the last commits, when it is killed
	*scribe
}

// audit is the trigger. Who makes a change is the name of its connection. A lease is given at the time by which it was judged.
// One statement may acquire and write, or write and release. A checkpoint is never saved twice as it is.
const audit = `
CREATE TABLE public.audit (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at timestamptz, replica text, name text, op text, lease uuid, length interval, record text, checkpoint text);
CREATE FUNCTION public.note(e soloist.entry, op text, lease uuid) RETURNS void LANGUAGE sql AS $$
	INSERT INTO public.audit (at, replica, name, op, lease, length, record, checkpoint)
	VALUES (CASE WHEN op IN ('acquire', 'renew') THEN e.ends - e.length ELSE clock_timestamp() END,
		current_setting('application_name'), e.name, op, lease, e.length, e.record, convert_from(e.checkpoint, 'UTF8'))
$$;
CREATE FUNCTION public.audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'INSERT' THEN
		PERFORM public.note(NEW, 'create', NULL);
	ELSIF TG_OP = 'DELETE' THEN
		PERFORM public.note(OLD, 'delete', NULL);
	ELSE
		IF NEW.broken AND NOT OLD.broken THEN
			PERFORM public.note(NEW, 'break', NEW.id);
		ELSIF NEW.id <> OLD.id OR OLD.id IS NULL THEN
			PERFORM public.note(NEW, 'acquire', NEW.id);
		ELSIF NEW.id = OLD.id AND NEW.ends <> OLD.ends THEN
			PERFORM public.note(NEW, 'renew', NEW.id);
		END IF;
		IF NEW.etag <> OLD.etag THEN
			PERFORM public.note(NEW, CASE WHEN NEW.checkpoint = OLD.checkpoint THEN 'metadata' ELSE 'put' END, coalesce(NEW.id, OLD.id));
		END IF;
		IF NEW.id IS NULL THEN
			PERFORM public.note(NEW, 'release', OLD.id);
		END IF;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON soloist.entry FOR EACH ROW EXECUTE FUNCTION public.audit();`

func newDatabase(ctx context.Context, o options, s *scribe) (service, error) {
	loses := mistakes[o.mistake].loses
	at, err := server.Launch("synchronous_commit=" + map[bool]string{true: "off", false: "on"}[loses])
	if err != nil {
		return nil, err
	}
	v := &database{server: at, scribe: s, loses: loses}
	if err = v.prepare(ctx); err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

// prepare has the store make its tables, and adds the trigger.
func (v *database) prepare(ctx context.Context) error {
	s, err := postgres.OpenURL(v.storage("storm", ""))
	if err != nil {
		return err
	}
	defer s.(*postgres.Store).Close()
	if _, err = s.Read(ctx, app+"/none"); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err = v.server.Query(audit)
	return err
}

func (v *database) close() { v.server.Close() }

func (v *database) line(replica string) (*line.Line, error) {
	l, err := line.To(replica, v.server.Address())
	if err == nil {
		v.lines = append(v.lines, l)
	}
	return l, err
}

func (v *database) storage(replica, address string) string {
	return v.server.URL(address) + "&application_name=" + replica
}

func (v *database) store() (store.Store, error) { return postgres.OpenURL(v.storage("storm", "")) }

// lossy is how long a server that loses commits writes none of them before it is killed.
const lossy = 3 * time.Second

// crash kills the server, however much is under way. That it loses nothing is judged at the end.
func (v *database) crash(ctx context.Context, down time.Duration, _ func() error) error {
	if v.loses {
		if err := v.stopWriting(); err != nil {
			return err
		}
		proctest.Pause(context.WithoutCancel(ctx), lossy)
	}
	v.server.Kill()
	proctest.Pause(ctx, down)
	return v.server.Start()
}

// stopWriting stops the process that writes what commits have left in memory.
func (v *database) stopWriting() error {
	text, err := v.server.Query("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGSTOP)
}

// shut cuts all lines, and ends what has come over them.
func (v *database) shut() error {
	for _, l := range v.lines {
		l.Down()
	}
	const waits = `DO $$ BEGIN
	PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'replica-%';
	WHILE EXISTS (SELECT FROM pg_stat_activity WHERE application_name LIKE 'replica-%') LOOP
		PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
	END LOOP;
END $$`
	_, err := v.server.Query(waits)
	return err
}

// listen reads all that the trigger has noted.
func (v *database) listen() error {
	text, err := v.server.Query(`SELECT json_build_object('At', at, 'Replica', replica, 'Name', name, 'Op', op, 'Lease', lease,
	'Seconds', extract(epoch FROM length)::int, 'Record', record, 'Checkpoint', checkpoint) FROM public.audit ORDER BY number`)
	if err != nil {
		return err
	}
	var all []change
	for noted := json.NewDecoder(strings.NewReader(text)); noted.More(); {
		var c struct {
			At                                           time.Time
			Replica, Name, Op, Lease, Record, Checkpoint string
			Seconds                                      int
		}
		if err := noted.Decode(&c); err != nil {
			return err
		}
		all = append(all, change{c.Replica, c.At, asBlob(c.Op, c.Name, c.Lease, c.Record, c.Checkpoint, c.Seconds)})
	}
	v.hear(all)
	return nil
}

// asBlob is the request that a blob service would get for a change. All changes under a lease are made under the condition
// of an ETag, by the store's statements.
func asBlob(op, name, lease, record, checkpoint string, seconds int) *blobtest.Request {
	headers := []string{world.LeaseID, lease, "x-ms-proposed-lease-id", lease, "x-ms-lease-duration", fmt.Sprint(seconds)}
	switch op {
	case "create":
		headers = []string{world.NoneMatch, "*", world.MetaKey, record}
		op = "put"
	case "metadata", "put":
		headers = append(headers, world.IfMatch, "*", world.MetaKey, record)
	case "acquire":
		headers = append(headers, world.IfMatch, "*")
	}
	return blobtest.NewRequest(op, "soloist", name, []byte(checkpoint), headers...)
}
