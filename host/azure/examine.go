package azure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/soloist-go/soloist/internal/examine"
)

// What [Store.Examine] returns.
type (
	Check   = examine.Check
	Finding = examine.Finding
)

// Examine returns the checks that show why a store does not work, each of which
// supposes that those before it found no failure. The last one looks for the
// entry of the given name, of which it is not expected that it exists, and
// creates the container if it is missing, as Create would. now is this machine's
// clock.
func (s *Store) Examine(name string, now func() time.Time) []Check {
	e := &examination{store: s, now: now}
	found := func(ctx context.Context) Finding { return e.found(ctx, name) }
	checks := []Check{{Name: "service", Do: e.service}, {Name: "clock", Do: e.clock},
		{Name: "credentials", Do: e.credentials}, {Name: "container", Do: found}}
	if !s.way.direct {
		return checks
	}
	return append([]Check{{Name: "dns", Do: e.lookUp}, {Name: "connection", Do: e.connect}}, checks...)
}

// An examination is what its checks have learnt so far.
type examination struct {
	store *Store
	now   func() time.Time
	skew  time.Duration // of our clock, ahead, as far as it is proved
	date  time.Time     // the service's time
}

func fine(format string, args ...any) Finding { return Finding{Text: fmt.Sprintf(format, args...)} }

func failure(advice, format string, args ...any) Finding {
	return Finding{Fails: true, Text: fmt.Sprintf(format, args...), Advice: advice}
}

// lookUpHost is a variable for tests.
var lookUpHost = resolver.LookupHost

// lookUp asks for the address of the service, or of the proxy before it.
func (e *examination) lookUp(ctx context.Context) Finding {
	address, proxied := e.store.way.address()
	host, _, _ := net.SplitHostPort(address)
	what := host
	if proxied {
		what = "the proxy " + host + " (HTTPS_PROXY, HTTP_PROXY)"
	}
	if net.ParseIP(host) != nil {
		return fine("%s is an address", what)
	}
	all, err := lookUpHost(ctx, host)
	if err == nil {
		return fine("%s is %s", what, strings.Join(all[:min(len(all), 3)], ", "))
	}
	advice := "check the name of the account in SOLOIST_STORAGE or AzureWebJobsStorage; if it has a private endpoint, link the zone privatelink.blob.core.windows.net to this network"
	if proxied {
		advice = "check the name of the proxy"
	}
	var unknown *net.DNSError
	if errors.As(err, &unknown) && !unknown.IsNotFound {
		advice = "check that this machine's name server works; then, that the name is right"
	}
	return failure(advice, "%s cannot be looked up: %s", what, unanswered(err))
}

// connect opens a connection of its own. Through a proxy it goes as far as that.
func (e *examination) connect(ctx context.Context) Finding {
	address, proxied := e.store.way.address()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return failure("check the port, and that firewalls, the subnet's rules and those of a private endpoint let this machine through",
			"no connection: %s", err)
	}
	defer conn.Close()
	if proxied {
		return fine("TCP to the proxy %s", address)
	}
	if e.store.way.box.Scheme != "https" {
		return fine("TCP to %s, not encrypted", address)
	}
	secure := tls.Client(conn, &tls.Config{ServerName: e.store.way.box.Hostname()})
	if err := secure.HandshakeContext(ctx); err != nil {
		return failure(tlsAdvice(err), "no TLS with %s: %s", address, err)
	}
	state := secure.ConnectionState()
	return fine("%s to %s, certificate of %.80q until %s", tls.VersionName(state.Version), address,
		state.PeerCertificates[0].Subject.CommonName, state.PeerCertificates[0].NotAfter.UTC().Format(time.DateOnly))
}

// tlsAdvice names what is wrong with a certificate.
func tlsAdvice(err error) string {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		roots   x509.SystemRootsError
		plain   tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &roots), errors.As(err, &unknown):
		return "its certificate is not trusted: install ca-certificates in the image, or, if a proxy opens TLS on the way, name its certificate in SSL_CERT_FILE"
	case errors.As(err, &name):
		return "its certificate is for another name: check the host in the URL, and the DNS of a private endpoint"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet: check this machine's clock, then the certificate"
	case errors.As(err, &plain):
		return "the other side does not speak TLS: check the port and the scheme of the URL"
	}
	return "check that nothing on the way interferes with TLS"
}

// service sends a request without credentials: whatever the Blob service thinks
// of it, it says who it is and what time it is.
func (e *examination) service(ctx context.Context) Finding {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, e.store.way.box.String()+"?restype=container", nil)
	if err != nil {
		return failure("", "no request can be made")
	}
	sent := e.now()
	resp, err := e.store.way.send.Do(r)
	if err != nil {
		advice := "check what lies between: a proxy, a firewall"
		if !e.store.way.direct || isTLS(err) {
			advice = tlsAdvice(err)
		}
		return failure(advice, "no answer: %s", unanswered(err))
	}
	received := e.now()
	io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	resp.Body.Close()
	if resp.Header.Get("x-ms-request-id") == "" {
		return failure(strangerAdvice, "not the Blob service answers, but something else: %s", something(resp))
	}
	if code := bloberror.Code(resp.Header.Get("x-ms-error-code")); code == "AccountRequiresHttps" {
		return failure("use https in the URL or the connection string", "%s", code)
	}
	e.note(sent, received, resp.Header.Get("Date"))
	return fine("%s answers within %s", cmpServer(resp), received.Sub(sent).Round(time.Millisecond))
}

func cmpServer(resp *http.Response) string {
	if server := resp.Header.Get("Server"); server != "" {
		return fmt.Sprintf("%.60q", server)
	}
	return "the Blob service"
}

func isTLS(err error) bool {
	var invalid *tls.CertificateVerificationError
	return errors.As(err, &invalid)
}

// note compares the clocks: the date was cut to whole seconds at some moment
// between the two of ours.
func (e *examination) note(sent, received time.Time, date string) {
	at, err := http.ParseTime(date)
	if err != nil {
		return
	}
	e.date = at
	switch {
	case received.Before(at):
		e.skew = received.Sub(at)
	case sent.After(at.Add(time.Second)):
		e.skew = sent.Sub(at.Add(time.Second))
	}
}

// By how much our clock may be off: the service refuses signatures that are
// more than 15 minutes from its time
// (https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key#specifying-the-date-header).
const (
	skewFine  = 5 * time.Second
	skewTaken = 15 * time.Minute
)

func (e *examination) clock(context.Context) Finding {
	const advice = "set this machine's clock (NTP, chrony, w32tm); in a container that of its host"
	off, way := e.skew.Abs().Round(time.Second), "ahead of"
	if e.skew < 0 {
		way = "behind"
	}
	switch signed := e.store.way.kind == byKey || e.store.way.kind == bySignature; {
	case e.date.IsZero():
		return Finding{Text: "the service has not told its time", Advice: "check what is on the way to it"}
	case off > skewTaken && signed:
		return failure(advice, "this machine is %s %s the service, which takes no key or signature beyond %s", off, way, skewTaken)
	case off > skewFine:
		return Finding{Text: fmt.Sprintf("this machine is %s %s the service", off, way), Advice: advice}
	case off > 0:
		return fine("%s %s the service's", off, way)
	}
	return fine("within a second of the service's")
}

// credentials says who we are, and gets the token of an identity.
func (e *examination) credentials(ctx context.Context) Finding {
	switch e.store.way.kind {
	case byKey:
		return fine("%s", &e.store.way)
	case bySignature:
		return e.signature()
	}
	token, err := e.store.way.id.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{storageScope}, EnableCAE: true})
	if err != nil {
		text, advice := e.store.Explain(unanswered(err))
		return failure(advice, "%s: %s", &e.store.way, text)
	}
	who := claims(token.Token)
	text := fmt.Sprintf("%s: a token until %s", &e.store.way, token.ExpiresOn.UTC().Format(time.RFC3339))
	if who.Object != "" {
		text += fmt.Sprintf(" for principal %.40s of tenant %.40s", who.Object, who.Tenant)
	}
	return fine("%s", text)
}

// A principal is who a token is for. It is shown, never trusted.
type principal struct {
	Object string `json:"oid"`
	Tenant string `json:"tid"`
	Type   string `json:"idtyp"` // app or user
}

func claims(token string) (p principal) {
	if parts := strings.Split(token, "."); len(parts) == 3 {
		if body, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			json.Unmarshal(body, &p) // what it is not stays empty
		}
	}
	return principal{plain(p.Object), plain(p.Tenant), p.Type}
}

// plain keeps what an id is made of, since it goes into a command to be copied.
func plain(text string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' {
			return c
		}
		return -1
	}, text)
}

// signatureSoon is how long before its end a signature is warned of.
const signatureSoon = 7 * 24 * time.Hour

// signature reads what a shared access signature says about itself
// (https://learn.microsoft.com/rest/api/storageservices/create-account-sas,
// https://learn.microsoft.com/rest/api/storageservices/create-service-sas).
func (e *examination) signature() Finding {
	v := e.store.way.signed
	now := e.date
	if now.IsZero() {
		now = e.now()
	}
	end, ends := sasTime(v.Get("se"))
	begin, begins := sasTime(v.Get("st"))
	permissions := v.Get("sp")
	lacks := func(letters string) bool { return permissions != "" && !strings.ContainsAny(permissions, letters) }
	text := e.store.way.String()
	if ends {
		text += " until " + end.UTC().Format(time.RFC3339)
	}
	advice := e.store.way.signatureAdvice()
	switch {
	case ends && now.After(end):
		return failure(advice, "%s has expired", text)
	case begins && now.Before(begin):
		return failure("wait, or "+advice, "%s begins at %s only", text, begin.UTC().Format(time.RFC3339))
	case v.Get("spr") == "https" && e.store.way.box.Scheme != "https":
		return failure("use https in the URL", "%s is for https only", text)
	case v.Has("ss") && !strings.Contains(v.Get("ss"), "b"):
		return failure(advice, "%s is not for the Blob service (ss=%.10s)", text, v.Get("ss"))
	case v.Has("srt") && !strings.Contains(v.Get("srt"), "o"):
		return failure(advice, "%s is not for blobs themselves (srt=%.10s lacks o)", text, v.Get("srt"))
	case v.Has("sr") && v.Get("sr") != "c" && v.Get("sr") != "d":
		return failure(advice, "%s is not for a container (sr=%.10s)", text, v.Get("sr"))
	case lacks("r"), lacks("w"):
		return failure(advice, "%s does not allow to read and write (sp=%.20s)", text, permissions)
	case ends && now.Add(signatureSoon).After(end):
		return Finding{Text: text + ", soon", Advice: advice}
	}
	return fine("%s", text)
}

func sasTime(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// found asks for an entry, which takes the container and the right to read.
func (e *examination) found(ctx context.Context, name string) Finding {
	_, err := e.store.container.NewBlobClient(name).GetProperties(ctx, nil)
	switch {
	case err == nil, bloberror.HasCode(err, bloberror.BlobNotFound):
		return fine("%s is there", e.store.name)
	case !bloberror.HasCode(err, bloberror.ContainerNotFound):
		text, advice := e.store.Explain(translate(read, name, err))
		return failure(advice, "%s: %s", e.store.name, text)
	}
	if err := e.store.createContainer(ctx); err != nil {
		text, advice := e.store.Explain(err)
		return failure(advice, "%s is missing, and it cannot be created: %s", e.store.name, text)
	}
	return fine("%s was missing and has been created", e.store.name)
}
