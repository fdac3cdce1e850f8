package otel

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/safefile"
)

// settings are the settings of a collector, from the variables of
// https://opentelemetry.io/docs/specs/otel/protocol/exporter/.
type settings struct {
	url     string
	headers map[string]string
	timeout time.Duration
	gzip    bool
	tls     *tls.Config
}

// variable is the value of a variable that a signal may have of its own.
func variable(signal, name string) (value, from string) {
	from = "OTEL_EXPORTER_OTLP_" + signal + "_" + name
	if value = os.Getenv(from); value == "" {
		from = "OTEL_EXPORTER_OTLP_" + name
		value = os.Getenv(from)
	}
	return value, from
}

func readSettings(signal string) (s settings, err error) {
	if protocol, from := variable(signal, "PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return s, fmt.Errorf("%s is %.40q: want http/protobuf, the one protocol that this program has, and an endpoint that takes it, as most collectors do on port 4318", from, protocol)
	}
	if s.url, err = endpoint(signal); err != nil {
		return s, err
	}
	s.timeout = 10 * time.Second
	if text, from := variable(signal, "TIMEOUT"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms <= 0 {
			return s, fmt.Errorf("%s is %.40q: want a number of milliseconds, such as 10000", from, text)
		}
		s.timeout = time.Duration(ms) * time.Millisecond
	}
	switch text, from := variable(signal, "COMPRESSION"); text {
	case "gzip":
		s.gzip = true
	case "", "none":
	default:
		return s, fmt.Errorf("%s is %.40q: want gzip or none", from, text)
	}
	if s.headers, err = headers(signal); err != nil {
		return s, err
	}
	s.tls, err = certificates(signal)
	return s, err
}

// endpoint is the URL that a signal is sent to. It may have a key in it, so an error does
// not show it.
func endpoint(signal string) (string, error) {
	from := "OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT"
	text := os.Getenv(from)
	if text == "" {
		from = "OTEL_EXPORTER_OTLP_ENDPOINT"
		text = strings.TrimSuffix(cmp.Or(os.Getenv(from), "http://localhost:4318"), "/") + "/v1/" + strings.ToLower(signal)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", errors.New(from + " (not shown) is no URL: want http://HOST:PORT or https://HOST:PORT")
	}
	return text, nil
}

// headers are those that the collector wants, often with a key: "name=value,name=value",
// where values are percent-encoded.
func headers(signal string) (map[string]string, error) {
	text, from := variable(signal, "HEADERS")
	all := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || err != nil || !isHeader(name, value) {
			return nil, errors.New(from + " (not shown) is malformed: want name=value,name=value with percent-encoded values")
		}
		all[name] = value
	}
	return all, nil
}

// isHeader reports whether HTTP can carry the header.
func isHeader(name, value string) bool {
	odd := func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune("()<>@,;:\\\"/[]?={}", c) }
	return name != "" && !strings.ContainsFunc(name, odd) && !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}

// certificates are the collector's, if the machine does not know its authority,
// and this program's; nil: neither is set.
func certificates(signal string) (*tls.Config, error) {
	authority, fromAuthority := variable(signal, "CERTIFICATE")
	chain, fromChain := variable(signal, "CLIENT_CERTIFICATE")
	key, _ := variable(signal, "CLIENT_KEY")
	if authority == "" && chain == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != "" {
		pem, err := safefile.Read(authority)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", fromAuthority, err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s has no certificate in PEM", fromAuthority, authority)
		}
	}
	if chain != "" {
		pair, err := tls.LoadX509KeyPair(chain, key)
		if err != nil {
			return nil, fmt.Errorf("%s and _CLIENT_KEY: %w", fromChain, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
