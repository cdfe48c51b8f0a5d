// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"
)

// Certificate fails if a certificate and its key cannot be served at the given time, because no client would accept them.
func Certificate(certFile, keyFile string, now time.Time) error {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return fmt.Errorf("load certificate %s with key %s: %w", certFile, keyFile, err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	switch {
	case err != nil:
		return fmt.Errorf("read certificate %s: %w", certFile, err)
	case now.After(leaf.NotAfter):
		return fmt.Errorf("certificate %s expired on %s: renew it", certFile, leaf.NotAfter.Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("certificate %s is not valid before %s: look at the clocks", certFile, leaf.NotBefore.Format(time.RFC3339))
	default:
		return nil
	}
}
