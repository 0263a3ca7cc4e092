package stepstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// web is the fake HTTP API of a state. It answers from the state's web section, and with 404 to all other requests. It
// rejects writes.
type web struct {
	*httptest.Server
	ca      []byte // PEM
	mu      sync.Mutex
	answers map[string][]webAnswer
	refused []string // requests that would have changed something
	tunnels responders
	now     time.Time // the value of ${now}
	key     *ecdsa.PrivateKey
	own     *x509.Certificate // the API's CA certificate
	shown   atomic.Pointer[tls.Certificate]
	asked   *asked // nil if requests are not recorded
}

// webAnswer is one answer to "METHOD /path". If there are several, the first whose When matches is used.
type webAnswer struct {
	Status int               `yaml:"status"` // 0 means 200
	JSON   any               `yaml:"json"`
	Body   string            `yaml:"body"`
	Type   string            `yaml:"type"` // content type of Body; default: text/plain
	When   map[string]string `yaml:"when"` // headers that the request must contain
	Header map[string]string `yaml:"header"`
}

func newWeb() (*web, error) {
	w := &web{now: time.Now()}
	var err error
	if w.Server, w.ca, err = serveTLS(http.HandlerFunc(w.serve)); err != nil {
		return nil, err
	}
	w.key = ownKey(w.TLS)
	w.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if c := w.shown.Load(); c != nil {
			return &tls.Config{Certificates: []tls.Certificate{*c}}, nil
		}
		return nil, nil // no change
	}
	w.own, err = x509.ParseCertificate(w.TLS.Certificates[0].Certificate[0])
	return w, err
}

// ServeTLS serves on loopback until the test ends. Its certificate is self-signed and valid for localhost and
// 127.0.0.1. It is also the returned CA, in PEM.
func ServeTLS(tb testing.TB, h http.Handler) (s *httptest.Server, ca []byte) {
	tb.Helper()
	s, ca, err := serveTLS(h)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s, ca
}

func serveTLS(h http.Handler) (*httptest.Server, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the web of a state"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.AddDate(10, 0, 0),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:        true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // some tests cause failing handshakes
	s.StartTLS()
	return s, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

var claims = regexp.MustCompile(`\$\{claims (\w+) (\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})\}`)

// expand replaces ${claims ALG {…}}, times, WireGuard macros, and macros whose values are known only after the API has
// started.
func (w *web) expand(text string) string {
	text = w.certs(w.tunnels.expand(timed(text, w.now)))
	u, _ := url.Parse(w.URL) // httptest sets a valid URL
	text = strings.NewReplacer(
		"${web}", w.URL, "${web-port}", u.Port(), "${web-ca}", base64.StdEncoding.EncodeToString(w.ca), "${web-ca-pem}\n",
		string(w.ca), "${web-ca-text}", strconv.Quote(string(w.ca)), "${web-ca-fingerprint}", fingerprint(w.Certificate()),
	).Replace(text)
	return claims.ReplaceAllStringFunc(text, func(m string) string {
		p, enc := claims.FindStringSubmatch(m), base64.RawURLEncoding
		return enc.EncodeToString([]byte(`{"alg":"`+p[1]+`","typ":"JWT"}`)) + "." + enc.EncodeToString([]byte(p[2])) + "." +
			enc.EncodeToString([]byte("stand-in"))
	})
}

func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// scrub returns pairs for a strings.Replacer that remove values that differ from run to run.
func (w *web) scrub() []string {
	u, _ := url.Parse(w.URL)
	return []string{
		fingerprint(w.Certificate()), "FINGERPRINT", fingerprint(w.Certificate())[:16], "FINGERPRINT", w.URL, "https://web",
		u.Host, "web:443", u.Port(), "PORT",
	}
}

// webSection parses a map from "METHOD /path" to an answer or a list of answers. null removes an entry. A path without
// a query matches any query.
func webSection(into map[string][]webAnswer, text string) error {
	var raw map[string]yaml.Node
	if err := yaml.Unmarshal([]byte(text), &raw); err != nil {
		return err
	}
	for key, node := range raw {
		method, path, _ := strings.Cut(key, " ")
		if (method != http.MethodGet && method != http.MethodHead) || !strings.HasPrefix(path, "/") {
			return fmt.Errorf("%q is not GET /path or HEAD /path: checks only read", key)
		}
		if node.Tag == "!!null" {
			delete(into, key)
			continue
		}
		many := []webAnswer{}
		if node.Kind != yaml.SequenceNode {
			many = append(many, webAnswer{})
			if err := node.Decode(&many[0]); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		} else if err := node.Decode(&many); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		into[key] = many
	}
	return nil
}

func (w *web) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked.note(r)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.refused = append(w.refused, r.Method+" "+r.URL.Path)
		http.Error(rw, "a state is read-only", http.StatusMethodNotAllowed)
		return
	}
	many, ok := w.answers[r.Method+" "+r.URL.RequestURI()]
	if !ok {
		many = w.answers[r.Method+" "+r.URL.Path]
	}
	for _, a := range many {
		if a.fits(r) {
			a.write(rw)
			return
		}
	}
	http.Error(rw, "the state has no answer to this request", http.StatusNotFound)
}

func (a webAnswer) fits(r *http.Request) bool {
	for header, want := range a.When {
		if r.Header.Get(header) != want {
			return false
		}
	}
	return true
}

func (a webAnswer) write(rw http.ResponseWriter) {
	kind := a.Type
	if a.JSON != nil {
		kind = "application/json"
	}
	if kind != "" {
		rw.Header().Set("Content-Type", kind)
	}
	for name, value := range a.Header {
		rw.Header().Set(name, value)
	}
	if a.Status != 0 {
		rw.WriteHeader(a.Status)
	}
	if a.JSON != nil {
		_ = json.NewEncoder(rw).Encode(a.JSON)
		return
	}
	_, _ = io.WriteString(rw, a.Body)
}

// untouched fails the test if a check sent a request that would change something.
func (w *web) untouched(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, request := range w.refused {
		t.Errorf("a check sent %s: checks only read", request)
	}
}
