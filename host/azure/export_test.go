package azure

import (
	"context"
	"net"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

const StorageScope = storageScope

var Resolver = resolver

// SetResolver has names looked up elsewhere until restore is called.
func SetResolver(r *net.Resolver) (restore func()) {
	before := lookUpHost
	lookUpHost = r.LookupHost
	return func() { lookUpHost = before }
}

// Network is the transport of a Config that names none, with so many connections
// at most.
func Network(most int) Config { return Config{Transport: network(most)} }

// Token asks the identity for a token.
func (s *Store) Token(ctx context.Context, scopes ...string) error {
	_, err := s.way.id.GetToken(ctx, policy.TokenRequestOptions{Scopes: scopes})
	return err
}

// DeleteContainer is for a test that has made one.
func (s *Store) DeleteContainer(ctx context.Context) error {
	_, err := s.container.Delete(ctx, nil)
	return err
}
