package proof

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/hostile"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
)

// hostileServer is a proxy of a side's API server that puts hostile text wherever another user could put text:
// messages, annotations, labels, versions, logs, warnings and names. It returns a kubeconfig for the proxy.
func hostileServer(t *testing.T, box *clustertest.Sandbox, side, dir string) string {
	t.Helper()
	text, err := os.ReadFile(box.Kubeconfigs[side])
	if err != nil {
		t.Fatal(err)
	}
	k, err := kubeconfig.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(k.ClientCert, []byte(k.ClientKey.Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(k.CA)
	at, err := url.Parse(k.Server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(at)
			r.Out.Header.Del("Accept-Encoding")
			r.Out.Header.Set("Accept", jsonAlone(r.In))
		},
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}, ForceAttemptHTTP2: true,
		},
		FlushInterval:  -1,
		ModifyResponse: poison,
		ErrorLog:       log.New(io.Discard, "", 0),
	}
	server := httptest.NewUnstartedServer(proxy)
	server.Config.ErrorLog = proxy.ErrorLog
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		proxy.Transport.(*http.Transport).CloseIdleConnections()
	})
	own := kubeconfig.Config{
		Name: box.Contexts[side], Server: server.URL, CA: pemOf(server.Certificate()), Token: masked.New("t"),
	}
	path := filepath.Join(dir, side+".kubeconfig")
	if err := os.WriteFile(path, []byte(own.Bytes().Reveal()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// jsonAlone returns an Accept header without types other than JSON.
func jsonAlone(r *http.Request) string {
	var out []string
	for _, a := range strings.Split(r.Header.Get("Accept"), ",") {
		if strings.Contains(a, "json") {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return "application/json"
	}
	return strings.Join(out, ",")
}

func poison(r *http.Response) error {
	r.Header.Add(
		"Warning",
		`299 - "beware `+
			strings.NewReplacer(
				"\x1b", "", "\x07", "", "\r", "", "\b", "", "\n", "", `"`, "", `\`, "",
			).Replace(hostile.Texts["turns the direction"]+hostile.Texts["8-bit controls"])+`"`,
	)
	switch kind := r.Header.Get("Content-Type"); {
	case strings.Contains(kind, "json") && r.Request.URL.Query().Get("watch") != "":
		r.Body = eachLine(r.Body, poisonedJSON)
	case strings.Contains(kind, "json"):
		body, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			return err
		}
		body = poisonedJSON(body)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	case strings.HasSuffix(r.Request.URL.Path, "/log"):
		r.Body = eachLine(
			r.Body, func(line []byte) []byte { return append(bytes.TrimRight(line, "\n"), []byte(hostile.All()+"\n")...) },
		)
	}
	r.Header.Del("Content-Length")
	return nil
}

func eachLine(body io.ReadCloser, change func([]byte) []byte) io.ReadCloser {
	out, in := io.Pipe()
	go func() {
		defer body.Close()
		for lines := bufio.NewReaderSize(body, 1<<16); ; {
			line, err := lines.ReadBytes('\n')
			if len(line) > 0 {
				if _, werr := in.Write(change(line)); werr != nil {
					return
				}
			}
			if err != nil {
				_ = in.CloseWithError(err)
				return
			}
		}
	}()
	return out
}

func poisonedJSON(body []byte) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return body
	}
	out, err := json.Marshal(poisoned(v))
	if err != nil {
		return body
	}
	return append(out, '\n')
}

// said are the keys of what is said for people.
var said = map[string]bool{
	"message": true, "description": true, "notes": true, "gitVersion": true, "kubeletVersion": true, "osImage": true,
	"kernelVersion": true, "containerRuntimeVersion": true,
}

func poisoned(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = poisoned(v[i])
		}
	case map[string]any:
		for key, inner := range v {
			text, isText := inner.(string)
			if isText && said[key] {
				v[key] = text + hostile.All() + strings.Repeat("long ", 20<<10)
				continue
			}
			v[key] = poisoned(inner)
		}
		if meta, ok := v["metadata"].(map[string]any); ok && v["kind"] != nil {
			for _, key := range []string{"annotations", "labels"} {
				notes, _ := meta[key].(map[string]any)
				if notes == nil {
					notes = map[string]any{}
				}
				notes["evil.example.org/"+hostile.Texts["clears the screen"]] = hostile.All()
				meta[key] = notes
			}
		}
	}
	return v
}
