// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// validity is the life of a certificate; a day before and after the cluster's own would do.
	validity = 365 * 24 * time.Hour
	// skew lets clocks be a little late.
	skew = time.Hour

	pemCertificate = "CERTIFICATE"
	pemKey         = "EC PRIVATE KEY"
)

// authority is the cluster's certificate authority. The API server trusts its client certificates.
type authority struct {
	cert                                    *x509.Certificate
	key                                     crypto.Signer
	certPEM                                 []byte
	certFile, serverCertFile, serverKeyFile string
}

// newAuthority makes an authority in a folder, and the certificate that all servers share.
func newAuthority(dir string) (*authority, error) {
	a := &authority{
		certFile:       filepath.Join(dir, "ca.crt"),
		serverCertFile: filepath.Join(dir, "server.crt"), serverKeyFile: filepath.Join(dir, "server.key"),
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "rollset-testbed"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	var err error
	if a.certPEM, _, err = a.issue(template); err != nil {
		return nil, err
	}
	serverCert, serverKey, err := a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.ParseIP(loopback)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return nil, err
	}
	for path, content := range map[string][]byte{a.certFile: a.certPEM, a.serverCertFile: serverCert, a.serverKeyFile: serverKey} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return nil, fmt.Errorf("write certificate: %w", err)
		}
	}
	return a, nil
}

// issue signs a certificate. The first one is the authority's own.
func (a *authority) issue(template *x509.Certificate) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, fmt.Errorf("make serial number: %w", err)
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-skew), time.Now().Add(validity)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("sign certificate: %w", err)
	}
	if a.cert == nil {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			return nil, nil, fmt.Errorf("read certificate: %w", err)
		}
		a.key = key
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: keyDER}), nil
}

// trust is for clients of the cluster's servers that need not say who they are.
func (a *authority) trust() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// RESTConfigFor is for clients that act as the user, a member of the groups, without a limit of requests. The user
// has the rights that RBAC gives.
func (c *Cluster) RESTConfigFor(user string, groups ...string) (*rest.Config, error) {
	cert, key, err := c.authority.issue(&x509.Certificate{
		Subject:  pkix.Name{CommonName: user, Organization: groups},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, fmt.Errorf("make credentials of %s: %w", user, err)
	}
	return &rest.Config{
		Host: "https://" + hostPort(c.ports.apiServer), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.authority.certPEM, CertData: cert, KeyData: key},
	}, nil
}

// KubeconfigFor writes a kubeconfig file with which to act as the user, a member of the groups, and returns its path.
func (c *Cluster) KubeconfigFor(user string, groups ...string) (string, error) {
	config, err := c.RESTConfigFor(user, groups...)
	if err != nil {
		return "", err
	}
	const name = "rollset"
	path := c.kubeconfigPath(user)
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: user}},
		CurrentContext: name,
	}, path)
	if err != nil {
		return "", fmt.Errorf("write kubeconfig of %s: %w", user, err)
	}
	return path, nil
}

func (c *Cluster) kubeconfigPath(user string) string {
	return filepath.Join(c.dir, strings.ReplaceAll(user, ":", "-")+".kubeconfig")
}
