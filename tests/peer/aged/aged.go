// Package aged makes certificates of nodes that were away for too long, and an authority that is as old as they are.
package aged

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// Authority is a control plane's node CA as of a year ago.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// NewAuthority makes a certificate of the key in the control plane's PKI folder; Write puts it into use.
func NewAuthority(folder string) (*Authority, error) {
	der, err := readPEM(filepath.Join(folder, "node-ca.key"))
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	a := &Authority{key: parsed.(*ecdsa.PrivateKey)}
	a.certificate = &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "better-compute node CA"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: time.Now().AddDate(9, 0, 0), KeyUsage: x509.KeyUsageCertSign}
	a.pem, err = a.sign(a.certificate, &a.key.PublicKey)
	return a, err
}

// Write replaces the node CA's certificate in a PKI folder; a serve that runs notices within 2 s.
func (a *Authority) Write(folder string) error {
	file := filepath.Join(folder, "node-ca.pem")
	return errors.Join(os.WriteFile(file+".new", a.pem, 0o644), os.Rename(file+".new", file))
}

// Expire replaces a node's certificate by one that is like it and expired so many days ago.
func (a *Authority) Expire(file string, days int) error {
	good, err := Read(file)
	if err != nil {
		return err
	}
	old, err := a.sign(&x509.Certificate{SerialNumber: big.NewInt(int64(days)), Subject: good.Subject, URIs: good.URIs, KeyUsage: good.KeyUsage,
		ExtKeyUsage: good.ExtKeyUsage, NotBefore: time.Now().AddDate(0, 0, -30-days), NotAfter: time.Now().AddDate(0, 0, -days)}, good.PublicKey)
	if err != nil {
		return err
	}
	return os.WriteFile(file, old, 0o600)
}

func (a *Authority) sign(template *x509.Certificate, key any) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key, a.key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}

// Read reads a certificate.
func Read(file string) (*x509.Certificate, error) {
	der, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func readPEM(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM", file)
	}
	return block.Bytes, nil
}
