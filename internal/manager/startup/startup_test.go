// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCertificate(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	cert, key := issue(t, now.Add(-time.Hour), now.Add(time.Hour))
	for name, tt := range map[string]struct {
		cert string
		at   time.Time
		want string
	}{
		"one that is valid":        {cert: cert, at: now},
		"one that has expired":     {cert: cert, at: now.Add(2 * time.Hour), want: "expired on 2026-11-21T11:00:00Z: renew it"},
		"one that is not yet good": {cert: cert, at: now.Add(-2 * time.Hour), want: "not valid before 2026-11-21T09:00:00Z"},
		"one that is not there":    {cert: cert + ".missing", at: now, want: "no such file"},
		"a key for a certificate":  {cert: key, at: now, want: "load certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Certificate(tt.cert, key, tt.at)
			if (err == nil) != (tt.want == "") || (err != nil && !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Certificate = %v, want %q", err, tt.want)
			}
		})
	}
}

// issue writes a certificate and its key, and returns their paths.
func issue(t *testing.T, from, until time.Time) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "EC PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}
