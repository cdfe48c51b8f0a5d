// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// asAdmin starts a manager with all rights, so that only its arguments or the cluster can make it refuse.
func asAdmin(t *testing.T, args ...string) (*manager.Process, error) {
	t.Helper()
	p, err := manager.Start(context.WithoutCancel(t.Context()), manager.Options{
		Binary: shared.binary, Kubeconfig: shared.Kubeconfig, Log: filepath.Join(t.TempDir(), "manager.log"), Args: args,
	})
	if err == nil {
		t.Cleanup(func() { _ = p.Stop() })
	}
	return p, err
}

func TestRefusals(t *testing.T) {
	apply(t, kustomize(t, "config/crd"))
	expired := t.TempDir()
	writeCertificate(t, expired, time.Now().Add(-time.Hour))
	for name, tt := range map[string]struct{ arg, want string }{
		"an unknown flag":        {"--unknown", "flag provided but not defined: -unknown"},
		"a value of a flag":      {"--metrics-secure=perhaps", `invalid boolean value "perhaps" for -metrics-secure`},
		"a port that is taken":   {"--health-probe-bind-address=" + strings.TrimPrefix(shared.RESTConfig().Host, "https://"), "address already in use"},
		"an expired certificate": {"--metrics-cert-path=" + expired, "serve metrics: certificate " + expired + "/tls.crt expired on "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := asAdmin(t, tt.arg)
			if err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("want %q, got: %v", tt.want, err)
			}
		})
	}
}

// TestRenewedCertificate replaces the certificate of a running manager.
func TestRenewedCertificate(t *testing.T) {
	apply(t, kustomize(t, "config/crd"))
	dir := t.TempDir()
	first := writeCertificate(t, dir, time.Now().Add(time.Hour))
	p, err := asAdmin(t, "--metrics-secure=true", "--metrics-cert-path="+dir)
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSuffix(strings.TrimPrefix(p.Metrics, "http://"), "/metrics")
	if served := certificate(t, address); served.Cmp(first) != 0 {
		t.Fatalf("serves certificate %v, want %v", served, first)
	}
	second := writeCertificate(t, dir, time.Now().Add(2*time.Hour))
	eventually(t, "the new certificate to be served", func() error {
		if served := certificate(t, address); served.Cmp(second) != 0 {
			return fmt.Errorf("serves certificate %v, want %v", served, second)
		}
		return nil
	})
}

// certificate returns the serial number of the certificate that a server shows.
func certificate(t *testing.T, address string) *big.Int {
	t.Helper()
	connection, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	secure, ok := connection.(*tls.Conn)
	if !ok {
		t.Fatalf("%T", connection)
	}
	return secure.ConnectionState().PeerCertificates[0].SerialNumber
}

// writeCertificate writes a certificate, valid until a time, and its key into a folder. It returns its serial number.
func writeCertificate(t *testing.T, dir string, until time.Time) *big.Int {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial := big.NewInt(until.UnixNano())
	template := &x509.Certificate{SerialNumber: serial, NotBefore: until.Add(-24 * time.Hour), NotAfter: until}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: cert}, "tls.key": {Type: "EC PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return serial
}
