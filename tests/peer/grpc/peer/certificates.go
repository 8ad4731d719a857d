package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"time"
)

const serverName = "gateway.test"

// files is a certificate authority and what it signed, as files for both sides.
type files struct {
	ca, serverCert, serverKey, clientCert, clientKey string
	pool                                             *x509.CertPool
	pair                                             tls.Certificate // the server's
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func writePEM(path, kind string, der []byte) string {
	data := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path, data, 0600); err != nil {
		panic(err)
	}
	return path
}

func makeFiles(b *bench) *files {
	f := &files{pool: x509.NewCertPool()}
	template := func(serial int64, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial),
			Subject:      pkix.Name{CommonName: name},
			NotBefore:    time.Now().Add(-time.Hour),
			NotAfter:     time.Now().Add(time.Hour),
		}
	}
	authorityKey := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	authority := template(1, "test authority")
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	der := must(x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey))
	f.ca = writePEM(b.path("ca.pem"), "CERTIFICATE", der)
	f.pool.AddCert(must(x509.ParseCertificate(der)))
	sign := func(serial int64, name string, use x509.ExtKeyUsage) (string, string) {
		key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
		leaf := template(serial, name)
		leaf.DNSNames, leaf.KeyUsage, leaf.ExtKeyUsage = []string{name}, x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{use}
		der := must(x509.CreateCertificate(rand.Reader, leaf, authority, &key.PublicKey, authorityKey))
		return writePEM(b.path(name+".pem"), "CERTIFICATE", der),
			writePEM(b.path(name+".key"), "EC PRIVATE KEY", must(x509.MarshalECPrivateKey(key)))
	}
	f.serverCert, f.serverKey = sign(2, serverName, x509.ExtKeyUsageServerAuth)
	f.clientCert, f.clientKey = sign(3, "node-1", x509.ExtKeyUsageClientAuth)
	f.pair = must(tls.LoadX509KeyPair(f.serverCert, f.serverKey))
	return f
}
