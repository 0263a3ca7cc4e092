package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/masked"
	"carrick/cluster/probe"
	"carrick/cluster/tracked"
)

const (
	limit = 4 << 20          // maximum size of a response in bytes
	age   = 10 * time.Second // how long the response to a GET is cached

	tokenLeast = 8 // minimum size of a token that is redacted in responses; a shorter one would match parts of words
)

// Client is a client for one HTTP API. It is safe for concurrent use.
type Client struct {
	base    *url.URL
	token   masked.Value
	timeout time.Duration
	client  *http.Client
}

// Address is the address of an HTTP API, with the CA and the token for it.
type Address struct {
	Base  string       // "https://renku.example.org/api/data"
	Token masked.Value // bearer token; zero: none
	CA    string       // CAs in PEM that are trusted in addition to the system's roots; "": none
}

// Open returns a client for the address. It returns the same errors as New.
func (a Address) Open() (*Client, error) {
	return New(a.Base, a.Token, Options{AlsoCA: []byte(a.CA)})
}

// Options are the options of a Client.
type Options struct {
	CA      []byte        // trusted CAs in PEM; nil: the system's roots
	AlsoCA  []byte        // CAs in PEM that are trusted in addition to the system's roots; nil: none
	Timeout time.Duration // limit for one request; 0: 10 s
}

// New returns a client for the API at base, such as "https://renku.example.org/api/data". token is its bearer token;
// the zero value means none. New sends no request. The client sends a token only over https, or to this machine.
func New(base string, token masked.Value, o Options) (*Client, error) {
	u, err := url.Parse(strings.TrimSuffix(base, "/"))
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%q is not the URL of an API", clean.Text(base))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf(
			"%q is more than an API URL: leave out user, query and fragment",
			clean.Text(u.Redacted()),
		)
	case u.Scheme == "http" && !token.IsZero() && !isThisMachine(u.Hostname()):
		return nil, fmt.Errorf("%s is not https: the token is not sent", clean.Text(u.String()))
	}
	pool, err := probe.Pool(o.CA)
	if err == nil && len(o.AlsoCA) > 0 {
		pool, err = probe.SystemAnd(o.AlsoCA)
	}
	if err != nil {
		return nil, fmt.Errorf("read the CA to trust for %s: %w", clean.Text(u.String()), err)
	}
	return &Client{base: u, token: token, timeout: cmp.Or(o.Timeout, 10*time.Second), client: &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: pool},
			ForceAttemptHTTP2: true, IdleConnTimeout: 30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func isThisMachine(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Base returns the URL of the API, without a trailing slash.
func (w *Client) Base() string { return w.base.String() }

// Close closes idle connections.
func (w *Client) Close() { w.client.CloseIdleConnections() }

type response struct {
	status int
	header http.Header
	body   []byte
	secret bool // the body might contain secrets, so only the API's error messages are shown
}

// Form posts a form to path, as OAuth's token endpoints require, and decodes the JSON of the response into out. The
// response is not cached. Form returns the same status and errors as JSON.
func (w *Client) Form(ctx context.Context, path string, form url.Values, out any) (status int, err error) {
	target, err := w.target(path)
	if err != nil {
		return 0, err
	}
	answer, err := w.call(ctx, http.MethodPost, target, "application/x-www-form-urlencoded", []byte(form.Encode()))
	answer.secret = true // the response contains tokens
	return answer.decode("POST "+clean.Text(target), target, out, err)
}

// JSON sends a request to path, which begins with "/" and can have a query. The body is the JSON of in (nil: no body).
// The JSON of the response is decoded into out (nil: ignored). The caller must reveal each masked.Value in the
// parameter in, because a masked value is encoded as "(hidden)". JSON returns the response's status. For a status of
// 300 or more, the error is an *Error. The response to a GET is cached for 10 s (see tracked.LookOf). Any other request
// drops the API's cached responses.
func (w *Client) JSON(ctx context.Context, method, path string, in, out any) (status int, err error) {
	target, err := w.target(path)
	if err != nil {
		return 0, err
	}
	doing := method + " " + clean.Text(target)
	var body []byte
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return 0, fmt.Errorf("%s: %w", doing, err)
		}
		if bytes.Contains(body, []byte(masked.Hidden)) {
			return 0, fmt.Errorf("%s: the request body contains a masked secret", doing)
		}
	}
	key := "web " + w.base.String() + " "
	answer := response{}
	if method == http.MethodGet && in == nil {
		answer, err = tracked.LookOf(ctx, w, key+target, age, func(ctx context.Context) (response, error) {
			return w.call(ctx, method, target, "", nil)
		})
	} else {
		answer, err = w.call(ctx, method, target, "application/json", body)
		tracked.Forget(ctx, key)
	}
	return answer.decode(doing, target, out, err)
}

// decode decodes the JSON of a response into out. err is the error from the request.
func (a response) decode(doing, target string, out any, err error) (int, error) {
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s: %w", doing, err)
	case a.status >= 300:
		return a.status, a.problem(target)
	case out == nil || len(a.body) == 0:
		return a.status, nil
	}
	if err := json.Unmarshal(a.body, out); err != nil {
		if !json.Valid(a.body) {
			err = failure.NotJSON(errors.New(a.excerpt()))
		}
		return a.status, fmt.Errorf("%s: %w", doing, err)
	}
	return a.status, nil
}

// target returns the URL of a path below the base URL.
func (w *Client) target(path string) (string, error) {
	u, err := url.Parse(w.base.String() + path)
	if err != nil || !strings.HasPrefix(path, "/") || u.Host != w.base.Host || u.Fragment != "" ||
		strings.Contains(u.Path+"/", "/../") {
		return "", fmt.Errorf("%q is not a path of %s", clean.Text(path), w.base)
	}
	return u.String(), nil
}

func (w *Client) call(ctx context.Context, method, target, kind string, body []byte) (response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, w.timeout, fmt.Errorf("%s did not answer in time", w.base.Host))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return response{}, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "carrick")
	if body != nil {
		req.Header.Set("Content-Type", kind)
	}
	if !w.token.IsZero() {
		req.Header.Set("Authorization", "Bearer "+w.token.Reveal())
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return response{}, w.why(ctx, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return response{}, w.why(ctx, err)
	case len(data) > limit:
		return response{}, fmt.Errorf("the answer is larger than %d MiB", limit>>20)
	}
	if token := w.token.Reveal(); len(token) >= tokenLeast { // some proxies and debug pages echo the request
		data = bytes.ReplaceAll(data, []byte(token), []byte(masked.Hidden))
		if to := resp.Header.Get("Location"); to != "" {
			resp.Header.Set("Location", strings.ReplaceAll(to, token, masked.Hidden))
		}
	}
	return response{status: resp.StatusCode, header: resp.Header, body: data}, nil
}

// why removes the URL from an error from net/http. If ctx has ended, it adds the cause.
func (w *Client) why(ctx context.Context, err error) error {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}
