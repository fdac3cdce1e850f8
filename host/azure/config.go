package azure

import (
	"errors"
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
