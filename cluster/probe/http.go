package probe

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// bodyLimit is how much of an answer is read.
const bodyLimit = 64 << 10

// HTTPReport is what an HTTP server answered.
type HTTPReport struct {
	Status      int
	Server      string // the header of that name, untrusted
	ContentType string
	Header      http.Header
	Body        []byte        // the first 64 KiB, untrusted
	Latency     time.Duration // until the headers were there, redirects included
	Date        time.Time     // the server's clock; zero when it does not say
	URL         string        // where the answer came from, after redirects
}

// HTTPOptions say how to ask.
type HTTPOptions struct {
	Roots       []byte      // PEM; nil: the system's
	ServerName  string      // the name that the certificate must be good for; "": the URL's host
	Header      http.Header // sent along; Authorization and cookies are not passed on to other hosts
	Body        []byte
	NoRedirects bool // a redirect is the answer; else up to ten are followed, but never from https to http
}

// HTTP asks url and reports the answer, whatever its status. It goes through the proxy that the environment names, as
// curl does. An untrusted certificate is an error, a *tls.CertificateVerificationError.
func HTTP(ctx context.Context, method, url string, o HTTPOptions) (HTTPReport, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	client, err := o.client()
	if err != nil {
		return HTTPReport{}, err
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(o.Body))
	if err != nil {
		return HTTPReport{}, fmt.Errorf("ask %s: %w", plain(url), err)
	}
	for name, values := range o.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	start := time.Now()
	// The client's own error names the method and the URL, without a password in it.
	resp, err := client.Do(req)
	if err != nil {
		return HTTPReport{}, orCause(ctx, err)
	}
	defer resp.Body.Close()
	report := HTTPReport{
		Status: resp.StatusCode, Header: resp.Header, Latency: time.Since(start), URL: resp.Request.URL.Redacted(),
		Server: resp.Header.Get("Server"), ContentType: resp.Header.Get("Content-Type"),
	}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		report.Date = date
	}
	if report.Body, err = io.ReadAll(io.LimitReader(resp.Body, bodyLimit)); err != nil {
		return report, fmt.Errorf("read the answer of %s: %w", plain(report.URL), orCause(ctx, err))
	}
	return report, nil
}

func (o HTTPOptions) client() (*http.Client, error) {
	pool, err := Pool(o.Roots)
	if err != nil {
		return nil, fmt.Errorf("read the CA to trust: %w", err)
	}
	client := &http.Client{
		Transport: &http.Transport{
			Proxy:             http.ProxyFromEnvironment,
			TLSClientConfig:   &tls.Config{RootCAs: pool, ServerName: o.ServerName},
			ForceAttemptHTTP2: true,
		},
		CheckRedirect: followSafely,
	}
	if o.NoRedirects {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return client, nil
}

func followSafely(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= 10:
		return errors.New("stopped after 10 redirects")
	case via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https":
		return fmt.Errorf("refused to be redirected from https to %s", plain(req.URL.Redacted()))
	}
	return nil
}
