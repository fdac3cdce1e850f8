package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/soloist-go/soloist/internal/examine"
)

// Examine returns doctor's checks of what lies between this process and its tables, each of which supposes that those
// before it found no failure. now is this machine's clock.
func (s *Store) Examine(_ string, now func() time.Time) []examine.Check {
	return []examine.Check{
		{Name: "connection", Do: s.on(checkConnection)},
		{Name: "server", Do: s.on(checkServer)},
		{Name: "clock", Do: s.on(clockCheck(now))},
		{Name: "schema", Do: s.checkSchema},
		{Name: "durability", Do: s.on(checkDurability)},
		{Name: "notifications", Do: s.checkWatch},
	}
}

// A check looks at the server over a connection.
type check func(context.Context, *pgxpool.Conn) (examine.Finding, error)

// on makes doctor's check of one.
func (s *Store) on(check check) func(context.Context) examine.Finding {
	return func(ctx context.Context) (f examine.Finding) {
		err := s.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) (err error) {
			f, err = check(ctx, c)
			return err
		})
		if err != nil {
			text, advice := s.Explain(s.translate("examine", s.place(), err))
			return examine.Finding{Fails: true, Text: text, Advice: advice}
		}
		return f
	}
}

// connectAdvice is what to do where there is no connection.
func connectAdvice(err error) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "check the name of the host in the URL"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "name the authority of the server's certificate by sslrootcert=FILE in the URL"
	case errors.As(err, new(*pgconn.ConnectError)):
		return "check host and port, that the server listens there, and that firewalls let this machine through"
	}
	return ""
}

func checkConnection(_ context.Context, c *pgxpool.Conn) (examine.Finding, error) {
	config := c.Conn().Config()
	to := fmt.Sprintf("as %s to database %s at %s", config.User, config.Database, c.Conn().PgConn().Conn().RemoteAddr())
	if secure, ok := c.Conn().PgConn().Conn().(*tls.Conn); ok {
		return examine.Finding{Text: fmt.Sprintf("%s, %s", to, tls.VersionName(secure.ConnectionState().Version))}, nil
	}
	f := examine.Finding{Text: to + ", not encrypted"}
	if a, ok := c.Conn().PgConn().Conn().RemoteAddr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		f.Advice = "whoever is on the way reads all of it: add sslmode=verify-full to the URL"
	}
	return f, nil
}

func checkServer(ctx context.Context, c *pgxpool.Conn) (f examine.Finding, err error) {
	var standby, readOnly bool
	err = c.QueryRow(ctx, "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::boolean").Scan(&standby, &readOnly)
	version := c.Conn().PgConn().ParameterStatus("server_version")
	f.Text = fmt.Sprintf("PostgreSQL %.40s", version)
	switch wrong := checkVersion(version); {
	case wrong != nil:
		return examine.Finding{Fails: true, Text: wrong.Error()}, err
	case standby:
		return examine.Finding{Fails: true, Text: f.Text + ", a standby, which nobody can write to",
			Advice: "connect to the primary: name all servers in the URL, with target_session_attrs=read-write"}, err
	case readOnly:
		return examine.Finding{Fails: true, Text: f.Text + ", read-only for this role or database",
			Advice: "see default_transaction_read_only"}, err
	}
	return f, err
}

// bearable is how far the clocks may be apart without a word: machines with NTP are nearer.
const bearable = time.Second

func clockCheck(now func() time.Time) check {
	return func(ctx context.Context, c *pgxpool.Conn) (examine.Finding, error) { return checkClock(ctx, c, now) }
}

func checkClock(ctx context.Context, c *pgxpool.Conn, now func() time.Time) (f examine.Finding, err error) {
	var there time.Time
	sent := now()
	err = c.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&there)
	// What the answer proves: the server read its clock between the two.
	ahead, behind := sent.Sub(there), there.Sub(now())
	switch off := max(ahead, behind); {
	case off <= bearable:
		f.Text = "within a second of the server's"
	case off == ahead:
		f.Text = fmt.Sprintf("this machine is %s ahead of the server", off.Round(time.Millisecond))
	default:
		f.Text = fmt.Sprintf("this machine is %s behind the server", off.Round(time.Millisecond))
	}
	if max(ahead, behind) > bearable {
		f.Advice = "ticks come by the server's clock; see that both machines have NTP"
	}
	return f, err
}

func (s *Store) checkSchema(ctx context.Context) examine.Finding {
	if err := s.prepare(ctx, "examine", s.place()); err != nil {
		text, advice := s.Explain(err)
		return examine.Finding{Fails: true, Text: text, Advice: advice}
	}
	return examine.Finding{Text: fmt.Sprintf("%s, version %d", s.place(), len(migrations))}
}

// checkDurability says what the server may lose.
func checkDurability(ctx context.Context, c *pgxpool.Conn) (f examine.Finding, err error) {
	var commit, fsync, names string
	var standbys, late int
	err = c.QueryRow(ctx, `SELECT current_setting('synchronous_commit'), current_setting('fsync'), current_setting('synchronous_standby_names'),
	count(pid), count(pid) FILTER (WHERE sync_state IN ('async', 'potential')) FROM pg_stat_replication`).
		Scan(&commit, &fsync, &names, &standbys, &late)
	if names == "" || commit == "local" { // else only a member of pg_monitor sees the state of a standby
		late = standbys
	}
	const twice = ": a job whose last outcome is lost can start the same tick twice"
	f.Text = fmt.Sprintf("synchronous_commit is %s, fsync %s; standbys: %d, of these asynchronous: %d", commit, fsync, standbys, late)
	switch {
	case fsync == "off":
		f.Advice = "after a crash of the machine the database may be damaged" + twice + "; set fsync = on"
	case commit == "off":
		f.Advice = "a crash of the server loses its last writes" + twice + "; set synchronous_commit = on for this role"
	case late > 0:
		f.Advice = "standbys get writes later, and a fail-over to one may lose the last ones" + twice +
			"; name them in synchronous_standby_names, with synchronous_commit = on"
	}
	return f, err
}
