package azure

import (
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
	ConnectionString          string // SOLOIST_STORAGE or AzureWebJobsStorage
	ServiceURL                string // SOLOIST_STORAGE or AzureWebJobsStorage__blobServiceUri; may carry a shared access signature
	QueueURL                  string // AzureWebJobsStorage__queueServiceUri, for [OpenQueue]; empty: from the blobs' address
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

func plainClient(url string, o azcore.ClientOptions) (*service.Client, error) {
	client, err := service.NewClientWithNoCredential(url, &service.ClientOptions{ClientOptions: o})
	if err != nil {
		return nil, errors.New("azure: the client library refuses the URL")
	}
	return client, nil
}

// serviceURL checks a blob service URL. Its errors do not quote it.
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
	accountName   = regexp.MustCompile(`^[a-z0-9]{3,24}$`)
	containerName = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9])*$`)
)

func checkContainer(name string) error {
	if len(name) < 3 || len(name) > 63 || !containerName.MatchString(name) {
		return errors.New("azure: container (SOLOIST_CONTAINER): not 3 to 63 lower-case letters, digits and single hyphens between them")
	}
	return nil
}

// Open checks the configuration and returns the store. It sends no request: the
// first call shows whether the service is there and lets us in.
func Open(c Config) (*Store, error) {
	direct := c.Transport == nil
	c.Transport = cutter{c.transport()}
	if c.Container == "" {
		c.Container = DefaultContainer
	}
	if err := checkContainer(c.Container); err != nil {
		return nil, err
	}
	client, id, err := c.client()
	if err != nil {
		return nil, err
	}
	box := client.NewContainerClient(c.Container)
	bare, _, _ := strings.Cut(box.URL(), "?")
	way := credentialsOf(c, box.URL(), id)
	way.direct = direct
	return &Store{container: box, name: c.Container, url: bare, way: way}, nil
}

// client picks the way in, in the order of the Functions host. The identity is
// nil where there is none.
func (c Config) client() (*service.Client, *identity, error) {
	switch {
	case c.ConnectionString != "":
		account, err := parseConnectionString(c.ConnectionString)
		if err != nil {
			return nil, nil, fmt.Errorf("azure: %s: %w", connectionSetting, err)
		}
		client, err := account.client(c.options(blobService))
		return client, nil, err
	case c.ServiceURL != "":
		return c.atURL()
	case c.AccountName != "":
		if !accountName.MatchString(c.AccountName) {
			return nil, nil, fmt.Errorf("azure: %s: not 3 to 24 lower-case letters and digits", accountSetting)
		}
		return c.withIdentity("https://" + c.AccountName + ".blob.core.windows.net/")
	}
	return nil, nil, fmt.Errorf("azure: no storage: set a %s, a %s or an %s", connectionSetting, urlSetting, accountSetting)
}

func (c Config) atURL() (*service.Client, *identity, error) {
	u, err := serviceURL(c.ServiceURL)
	if err != nil {
		return nil, nil, fmt.Errorf("azure: %s: %w", urlSetting, err)
	}
	if u.RawQuery == "" {
		if u.Scheme != "https" {
			return nil, nil, fmt.Errorf("azure: %s: an identity needs https", urlSetting)
		}
		return c.withIdentity(u.String())
	}
	if inClear(u) {
		return nil, nil, fmt.Errorf("azure: %s: %w", urlSetting, errInClear)
	}
	client, err := plainClient(u.String(), c.options(blobService))
	return client, nil, err
}

func (c Config) withIdentity(url string) (*service.Client, *identity, error) {
	options := c.options(blobService)
	id, err := c.identify(&options)
	if err != nil {
		return nil, nil, err
	}
	client, err := plainClient(url, options)
	return client, id, err
}

// An account is what a connection string says: a key or a signature, never
// both.
type account struct {
	url       string // of the blobs, with the signature
	queue     string // of the queues, without it; empty: from the blobs' address
	name, key string
}

// development is what UseDevelopmentStorage=true stands for
// (https://learn.microsoft.com/azure/storage/common/storage-connect-azurite):
// the key is public.
var development = account{
	url:  "http://127.0.0.1:10000/devstoreaccount1",
	name: "devstoreaccount1",
	key:  "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
}

func (a account) client(o azcore.ClientOptions) (*service.Client, error) {
	if a.key == "" {
		return plainClient(a.url, o)
	}
	cred, err := service.NewSharedKeyCredential(a.name, a.key)
	if err != nil {
		return nil, fmt.Errorf("azure: %s: AccountKey is not base64", connectionSetting)
	}
	client, err := service.NewClientWithSharedKeyCredential(a.url, cred, &service.ClientOptions{ClientOptions: o})
	if err != nil {
		return nil, fmt.Errorf("azure: %s: the client library refuses it", connectionSetting)
	}
	return client, nil
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
		return account{}, err
	}
	signature := strings.TrimPrefix(pairs["sharedaccesssignature"], "?")
	switch {
	case a.key != "" && a.name == "":
		return account{}, errors.New("it has AccountKey without AccountName: want both")
	case a.key != "":
		if _, err := base64.StdEncoding.DecodeString(a.key); err != nil {
			return account{}, errors.New("AccountKey is not base64: want the key as the portal shows it")
		}
		return a, nil
	case signature == "":
		return account{}, errors.New("it has neither AccountKey nor SharedAccessSignature: want one of them")
	case !strings.Contains(signature, "sig="):
		return account{}, errors.New("SharedAccessSignature has no signature")
	}
	if u, err := url.Parse(a.url); err != nil || inClear(u) {
		return account{}, errInClear
	}
	a.url += "?" + signature
	return a, nil
}

// emulator is the account of an emulator on the host that proxy names, if it
// names one: a DevelopmentStorageProxyUri stands for an address without its port
// (https://learn.microsoft.com/azure/storage/common/storage-configure-connection-string#connect-to-the-emulator-account-using-the-shortcut).
func emulator(proxy string) (account, error) {
	if proxy == "" {
		return development, nil
	}
	u, err := serviceURL(proxy)
	if err != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "" || u.Port() != "" && u.Port() != "10000" {
		return account{}, errors.New("DevelopmentStorageProxyUri is not http or https and a host, with port 10000 or none: for another address give BlobEndpoint, AccountName and AccountKey")
	}
	a := development
	a.url = u.Scheme + "://" + strings.TrimSuffix(u.Host, ":10000") + ":10000/" + a.name
	return a, nil
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

func endpoint(pairs map[string]string) (string, error) {
	if blob := pairs["blobendpoint"]; blob != "" {
		u, err := serviceURL(blob)
		if err != nil || u.RawQuery != "" {
			return "", errors.New("BlobEndpoint is not a blob service URL without a query")
		}
		return strings.TrimSuffix(u.String(), "/") + "/", nil
	}
	name, protocol, suffix := pairs["accountname"], pairs["defaultendpointsprotocol"], pairs["endpointsuffix"]
	if protocol == "" {
		protocol = "https"
	}
	if suffix == "" {
		suffix = "core.windows.net"
	}
	switch {
	case name == "":
		return "", errors.New("it has neither AccountName nor BlobEndpoint: want one of them")
	case !accountName.MatchString(name):
		return "", errors.New("AccountName is not 3 to 24 lower-case letters and digits")
	case protocol != "https" && protocol != "http":
		return "", errors.New("DefaultEndpointsProtocol is neither https nor http")
	}
	u, err := serviceURL(protocol + "://" + name + ".blob." + suffix + "/")
	if err != nil {
		return "", errors.New("EndpointSuffix is not a host name")
	}
	return u.String(), nil
}
