package azure

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

// A Config says where the container is and who we are. Its fields are the
// settings of a Functions app's own storage, so that such an app needs no
// others
// (https://learn.microsoft.com/azure/azure-functions/functions-reference#connecting-to-host-storage-with-an-identity).
//
// One of ConnectionString, ServiceURL and AccountName is needed; the first one
// given wins. A connection string, or a ServiceURL with a signature, is its own
// credential; otherwise an identity is used, by the first line that fits. An
// identity needs https, and so does a signature except to localhost. An account
// key may go over http, since requests carry only what it has signed; records
// can then be read and answers forged on the way.
//
//	Credential "managedidentity"       the platform's identity: which ClientID or
//	                                   ManagedIdentityResourceID names, else the system's
//	TenantID, ClientID, ClientSecret   a service principal
//	none of them                       DefaultAzureCredential: environment, workload
//	                                   identity, platform, Azure CLI
//
// Errors name the setting, never its value.
type Config struct {
	ConnectionString string // SOLOIST_STORAGE or AzureWebJobsStorage

	// ServiceURL is SOLOIST_STORAGE or AzureWebJobsStorage__blobServiceUri. It may carry a shared
	// access signature.
	ServiceURL string

	// QueueURL is AzureWebJobsStorage__queueServiceUri, for [OpenQueue]. Empty: it follows from the
	// address of the blobs.
	QueueURL string

	AccountName               string // AzureWebJobsStorage__accountName, in the public cloud
	Credential                string // AzureWebJobsStorage__credential: empty or "managedidentity"
	ClientID                  string // AzureWebJobsStorage__clientId
	ManagedIdentityResourceID string // AzureWebJobsStorage__managedIdentityResourceId
	TenantID                  string // AzureWebJobsStorage__tenantId
	ClientSecret              string // AzureWebJobsStorage__clientSecret
	Container                 string // SOLOIST_CONTAINER; empty: "soloist"

	// Transport sends the requests, also those for tokens. Nil: over the network.
	Transport interface {
		Do(*http.Request) (*http.Response, error)
	}
}

// DefaultContainer is the container of a [Config] that names none.
const DefaultContainer = "soloist"

// The names of the settings in errors.
const (
	connectionSetting = "connection string (SOLOIST_STORAGE or AzureWebJobsStorage)"
	urlSetting        = "blob service URL (SOLOIST_STORAGE or AzureWebJobsStorage__blobServiceUri)"
	accountSetting    = "account name (AzureWebJobsStorage__accountName)"
	queueSetting      = "queue service URL (AzureWebJobsStorage__queueServiceUri)"
)

// A signature is sent with each request: a reader of one has it. An account
// key is not sent, so over http it stays secret, but records do not.
var errInClear = errors.New("http would send the shared access signature unencrypted: use https, or for an emulator on another machine its account key (http with a signature is allowed to localhost only)")

// inClear reports whether what is sent to u can be read on a network.
func inClear(u *url.URL) bool {
	host := u.Hostname()
	return u.Scheme != "https" && !strings.EqualFold(host, "localhost") && !net.ParseIP(host).IsLoopback()
}

// options turn everything off that repeats or delays a request: only the
// caller knows the deadline of its lease.
func (c Config) options(service string) azcore.ClientOptions {
	return azcore.ClientOptions{
		Transport: c.Transport,
		Retry:     policy.RetryOptions{MaxRetries: -1},
		Telemetry: policy.TelemetryOptions{ApplicationID: "soloist"},

		PerRetryPolicies: []policy.Policy{genuine{service}},
	}
}

// entrance checks a URL without a key beside it. Its errors do not quote it.
func entrance(text string) (*url.URL, error) {
	u, err := serviceURL(text)
	switch {
	case err != nil:
		return nil, err
	case u.RawQuery != "" && inClear(u):
		return nil, errInClear
	case u.RawQuery == "" && u.Scheme != "https":
		return nil, errors.New("an identity needs https")
	}
	return u, nil
}

// serviceURL checks the URL of a service. Its errors do not quote it.
func serviceURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("not a URL")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, errors.New("not an http or https URL with a host")
	case u.User != nil || u.Fragment != "":
		return nil, errors.New("neither a user nor a fragment belongs there")
	case u.RawQuery != "" && u.Query().Get("sig") == "":
		return nil, errors.New("its query is no shared access signature")
	case strings.Contains(u.Host, ".blob.") && strings.Trim(u.Path, "/") != "":
		return nil, errors.New("a path does not belong there: the container is a setting of its own (SOLOIST_CONTAINER)")
	}
	return u, nil
}

// Names, by https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata
// and https://learn.microsoft.com/azure/storage/common/storage-account-overview#storage-account-name.
var (
	accountName = regexp.MustCompile(`^[a-z0-9]{3,24}$`)
	boxName     = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9])*$`)
)

// checkName checks the name of a container or a queue, for which the rules are the same. What names the setting.
func checkName(what, name string) error {
	if len(name) < 3 || len(name) > 63 || !boxName.MatchString(name) {
		return fmt.Errorf("azure: %s: not 3 to 63 lower-case letters, digits and single hyphens between them", what)
	}
	return nil
}

// Open checks the configuration and returns the store. It sends no request: the
// first call shows whether the service is there and lets us in.
func Open(c Config) (*Store, error) {
	direct := c.Transport == nil
	c.Transport = cutter{c.transport()}
	c.Container = cmp.Or(c.Container, DefaultContainer)
	if err := checkName("container (SOLOIST_CONTAINER)", c.Container); err != nil {
		return nil, err
	}
	a, err := c.account()
	if err != nil {
		return nil, err
	}
	options := service.ClientOptions{ClientOptions: c.options(blobService)}
	id, err := c.identify(a, &options.ClientOptions)
	if err != nil {
		return nil, err
	}
	client, err := a.client(&options)
	if err != nil {
		return nil, errLibrary
	}
	box := client.NewContainerClient(c.Container)
	bare, _, _ := strings.Cut(box.URL(), "?")
	way := credentialsOf(c, box.URL(), id)
	way.direct = direct
	return &Store{container: box, name: c.Container, url: bare, way: way}, nil
}

// transport returns the given transport, or else a transport over the network.
func (c Config) transport() policy.Transporter {
	if c.Transport != nil {
		return c.Transport
	}
	return network(mostConnections())
}

// An account is where the blobs are, and what lets us in: the key, a signature in the URL, or with neither an identity.
type account struct {
	setting   string   // that names it
	url       *url.URL // of the blobs, or for a queue of the queues
	queue     string   // of the queues, without the signature; empty: from the blobs' address
	name, key string
}

// account picks the way in, in the order of the Functions host.
func (c Config) account() (a account, err error) {
	switch {
	case c.ConnectionString != "":
		a, err = parseConnectionString(c.ConnectionString)
		a.setting = connectionSetting
	case c.ServiceURL != "":
		a.setting = urlSetting
		a.url, err = entrance(c.ServiceURL)
	case c.AccountName != "":
		a.setting = accountSetting
		if !accountName.MatchString(c.AccountName) {
			err = errors.New("not 3 to 24 lower-case letters and digits")
		}
		a.url = &url.URL{Scheme: "https", Host: c.AccountName + ".blob.core.windows.net", Path: "/"}
	default:
		return a, fmt.Errorf("azure: no storage: set a %s, a %s or an %s", connectionSetting, urlSetting, accountSetting)
	}
	return a, a.named(err)
}

// named says in an error which setting it is about.
func (a account) named(err error) error {
	if err != nil {
		err = fmt.Errorf("azure: %s: %w", a.setting, err)
	}
	return err
}

// errLibrary stands for an error of the client library, which may quote a secret.
var errLibrary = errors.New("azure: the client library refuses the URL or the key")

func (a account) client(o *service.ClientOptions) (*service.Client, error) {
	if a.key == "" {
		return service.NewClientWithNoCredential(a.url.String(), o)
	}
	cred, err := service.NewSharedKeyCredential(a.name, a.key)
	if err != nil {
		return nil, err
	}
	return service.NewClientWithSharedKeyCredential(a.url.String(), cred, o)
}

// development is what UseDevelopmentStorage=true stands for
// (https://learn.microsoft.com/azure/storage/common/storage-connect-azurite):
// the key is public. The host is that of the emulator, which has port 10000.
func development(scheme, host string) account {
	const name = "devstoreaccount1"
	return account{
		url:  &url.URL{Scheme: scheme, Host: host + ":10000", Path: "/" + name},
		name: name,
		key:  "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
	}
}

// parseConnectionString reads the pairs of a connection string
// (https://learn.microsoft.com/azure/storage/common/storage-configure-connection-string).
// Unlike the client library it takes the keys in any case, as the Functions
// host does, and its errors name the key at fault.
func parseConnectionString(text string) (account, error) {
	pairs, err := splitPairs(text)
	if err != nil {
		return account{}, err
	}
	if strings.EqualFold(pairs["usedevelopmentstorage"], "true") {
		return emulator(pairs["developmentstorageproxyuri"])
	}
	a := account{name: pairs["accountname"], key: pairs["accountkey"], queue: pairs["queueendpoint"]}
	if a.url, err = endpoint(pairs); err != nil {
		return a, err
	}
	signature := strings.TrimPrefix(pairs["sharedaccesssignature"], "?")
	switch {
	case a.key != "" && a.name == "":
		return a, errors.New("it has AccountKey without AccountName: want both")
	case a.key != "":
		if _, err := base64.StdEncoding.DecodeString(a.key); err != nil {
			return a, errors.New("AccountKey is not base64: want the key as the portal shows it")
		}
		return a, nil
	case signature == "":
		return a, errors.New("it has neither AccountKey nor SharedAccessSignature: want one of them")
	case !strings.Contains(signature, "sig="):
		return a, errors.New("SharedAccessSignature has no signature")
	}
	if inClear(a.url) {
		return a, errInClear
	}
	a.url.RawQuery = signature
	return a, nil
}

// emulator is the account of an emulator on the host that proxy names, if it
// names one: a DevelopmentStorageProxyUri stands for an address without its port
// (https://learn.microsoft.com/azure/storage/common/storage-configure-connection-string#connect-to-the-emulator-account-using-the-shortcut).
func emulator(proxy string) (account, error) {
	if proxy == "" {
		return development("http", "127.0.0.1"), nil
	}
	u, err := serviceURL(proxy)
	if err != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "" || u.Port() != "" && u.Port() != "10000" {
		return account{}, errors.New("DevelopmentStorageProxyUri is not http or https and a host, with port 10000 or none: for another address give BlobEndpoint, AccountName and AccountKey")
	}
	return development(u.Scheme, strings.TrimSuffix(u.Host, ":10000")), nil
}

// splitPairs does not quote text in its errors: any part may be a key.
func splitPairs(text string) (map[string]string, error) {
	pairs := map[string]string{}
	for i, part := range strings.Split(text, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("part %d is not of the form key=value", i+1)
		}
		pairs[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
	}
	return pairs, nil
}

func endpoint(pairs map[string]string) (*url.URL, error) {
	if blob := pairs["blobendpoint"]; blob != "" {
		u, err := serviceURL(blob)
		if err != nil || u.RawQuery != "" {
			return nil, errors.New("BlobEndpoint is not a blob service URL without a query")
		}
		return u, nil
	}
	name := pairs["accountname"]
	protocol, suffix := cmp.Or(pairs["defaultendpointsprotocol"], "https"), cmp.Or(pairs["endpointsuffix"], "core.windows.net")
	switch {
	case name == "":
		return nil, errors.New("it has neither AccountName nor BlobEndpoint: want one of them")
	case !accountName.MatchString(name):
		return nil, errors.New("AccountName is not 3 to 24 lower-case letters and digits")
	case protocol != "https" && protocol != "http":
		return nil, errors.New("DefaultEndpointsProtocol is neither https nor http")
	}
	u, err := serviceURL(protocol + "://" + name + ".blob." + suffix + "/")
	if err != nil {
		return nil, errors.New("EndpointSuffix is not a host name")
	}
	return u, nil
}
