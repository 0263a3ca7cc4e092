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

// bodyLimit is the maximum number of bytes that are read from a body.
const bodyLimit = 64 << 10

// HTTPReport is the response of an HTTP server.
type HTTPReport struct {
	Status      int
	Server      string // value of the Server header, untrusted
	ContentType string
	Header      http.Header
	Body        []byte        // the first 64 KiB, untrusted
	Latency     time.Duration // until the headers arrived, including redirects
	Date        time.Time     // the server's time from the Date header; zero if unknown
	URL         string        // URL of the response, after redirects
}

// HTTPOptions are the options of a request.
type HTTPOptions struct {
	Roots       []byte      // CAs in PEM; nil: the system's roots
	ServerName  string      // name for which the certificate must be valid; "": the URL's host
	Header      http.Header // additional headers; Authorization and cookies are not sent to other hosts on redirect
	Body        []byte
	NoRedirects bool // return redirects as responses; otherwise follow up to ten, but not from https to http
}

// HTTP sends a request to url and reports the response, whatever its status. Like curl, it uses the proxy in the
// environment. If the server's certificate is not trusted, the error is a *tls.CertificateVerificationError.
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
		return HTTPReport{}, fmt.Errorf("send a request to %s: %w", plain(url), err)
	}
	for name, values := range o.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	start := time.Now()
	// The client's error contains the method, and the URL without the password.
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
		return fmt.Errorf("refused to follow a redirect from https to %s", plain(req.URL.Redacted()))
	}
	return nil
}
