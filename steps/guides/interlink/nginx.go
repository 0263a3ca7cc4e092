package interlink

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// nginxConf contains all inputs for the proxy's configuration.
type nginxConf struct {
	listen    int           // TLS port
	ipv6      bool          // also listen on IPv6
	tls       string        // directory with tls.crt and tls.key
	kubeCA    string        // file of the CA that the API server's certificate verifies against
	upstream  string        // host:port of the API server
	name      string        // name that the API server's certificate must be valid for
	readAfter time.Duration // idle timeout of a connection
	openAfter time.Duration // timeout for a handshake and for a request's header
	temp      string        // writable directory
}

// proxyConf is the configuration that carrick ships.
var proxyConf = nginxConf{
	listen: proxyListens, tls: "/tls", kubeCA: "/kube/ca.crt", upstream: inCluster + ":443", name: inCluster,
	readAfter: time.Hour, openAfter: 10 * time.Second, temp: "/tmp",
}

// maxConnections is the maximum number of connections. Each request uses two connections. All jobs of a site can come
// from one address, so nginx does not limit the connections per address. Instead, unfinished handshakes and requests
// time out quickly.
const maxConnections = 8192

// servedPaths lists the only paths that the proxy forwards. kubectl and the client libraries request these paths.
var servedPaths = []string{"api", "apis", "version", "openapi"}

// directive is an nginx directive. block is nil if the directive has no block.
type directive struct {
	words []word
	block []directive
}

// word is one word of a directive, as written in the file and with its quotes.
type word string

// plainWord matches words that require no quotes.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@-]+$`)

// lit returns s as a word that nginx reads literally. nginx has no escape for $, so lit rejects a string that contains
// $ or a control character.
func lit(s string) (word, error) {
	for _, r := range s {
		if r == '$' || r < ' ' || r == 0x7f {
			return "", fmt.Errorf("nginx's configuration cannot contain %q, because of the character %q", s, r)
		}
	}
	if plainWord.MatchString(s) {
		return word(s), nil
	}
	return word(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`), nil
}

// line returns a directive without a block. words must come from carrick itself, because they can contain nginx
// variables and expressions.
func line(words ...word) directive { return directive{words: words} }

func block(d directive, in ...directive) directive {
	d.block = append([]directive{}, in...)
	return d
}

// encode returns the configuration in nginx's syntax.
func (c nginxConf) encode() (string, error) {
	host, port, err := net.SplitHostPort(c.upstream)
	if n, e := strconv.Atoi(port); err != nil || e != nil || n < 1 || n > 65535 || host == "" {
		return "", fmt.Errorf("%q is not the host:port of an API server", c.upstream)
	}
	if c.listen < 1024 || c.listen > 65535 {
		return "", fmt.Errorf("a proxy that does not run as root cannot listen on port %d", c.listen)
	}
	if c.readAfter < time.Second || c.openAfter < time.Second {
		return "", fmt.Errorf("the timeouts are too short: %s for a watch, or %s for a request", c.readAfter, c.openAfter)
	}
	var w struct{ cert, key, ca, upstream, name, pid word }
	for _, x := range []struct {
		to   *word
		text string
	}{
		{&w.ca, c.kubeCA},
		{&w.upstream, c.upstream},
		{&w.name, c.name},
		{&w.pid, c.temp + "/nginx.pid"},
		{&w.cert, c.tls},
		{&w.key, c.temp},
	} {
		if *x.to, err = lit(x.text); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	b.WriteString("# Made by carrick: the Kubernetes API for jobs behind an InterLink node.\n")
	for _, d := range []directive{
		line("worker_processes", "1"),
		line("worker_shutdown_timeout", "20s"),
		line("worker_rlimit_nofile", word(fmt.Sprint(2*maxConnections))),
		line("pid", w.pid),
		line("error_log", "stderr", "warn"),
		block(line("events"), line("worker_connections", word(fmt.Sprint(maxConnections)))),
		block(line("http"), c.http(w.ca, w.upstream, w.name)...),
	} {
		d.write(&b, 0)
	}
	return b.String(), nil
}

func (c nginxConf) http(ca, upstream, name word) []directive {
	out := []directive{}
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		at, _ := lit(c.temp + "/" + kind)
		out = append(out, line(word(kind+"_temp_path"), at))
	}
	after := word(fmt.Sprintf("%ds", int(c.readAfter.Seconds())))
	return append(out,
		line("access_log", "off"),
		line("server_tokens", "off"),
		block(line("map", "$http_upgrade", "$connection_upgrade"), line("default", "upgrade"), line("''", "''")),
		// If the name of a certificate file contains a variable, nginx opens the file at each handshake. It therefore
		// serves a renewed certificate without a restart.
		block(line("map", "$ssl_server_name", "$pair"), line("default", "tls")),
		block(line("server"), append(c.server(), block(line("location", "~", pathExpression("(/|$)")),
			line("proxy_pass", "https://"+upstream),
			line("proxy_http_version", "1.1"),
			line("proxy_set_header", "Host", name),
			line("proxy_set_header", "Upgrade", "$http_upgrade"),
			line("proxy_set_header", "Connection", "$connection_upgrade"),
			line("proxy_set_header", "X-Forwarded-For", "$remote_addr"),
			line("proxy_buffering", "off"),
			line("proxy_request_buffering", "off"),
			line("proxy_read_timeout", after),
			line("proxy_send_timeout", after),
			line("proxy_socket_keepalive", "on"),
			line("proxy_ssl_verify", "on"),
			line("proxy_ssl_verify_depth", "5"),
			line("proxy_ssl_trusted_certificate", ca),
			line("proxy_ssl_name", name),
			line("proxy_ssl_server_name", "on"),
			line("proxy_ssl_protocols", "TLSv1.2", "TLSv1.3"),
		), block(line("location", "/"), line("return", "404")))...),
	)
}

func (c nginxConf) server() []directive {
	after := word(fmt.Sprintf("%ds", int(c.readAfter.Seconds())))
	out := []directive{line("listen", word(fmt.Sprint(c.listen)), "ssl")}
	if c.ipv6 {
		out = append(out, line("listen", word(fmt.Sprintf("[::]:%d", c.listen)), "ssl"))
	}
	cert, _ := lit(c.tls)
	return append(out,
		line("ssl_certificate", cert+"/$pair.crt"),
		line("ssl_certificate_key", cert+"/$pair.key"),
		line("ssl_protocols", "TLSv1.2", "TLSv1.3"),
		line("client_max_body_size", "0"),
		line("large_client_header_buffers", "8", "32k"),
		line("send_timeout", after),
		line("client_header_timeout", word(fmt.Sprintf("%ds", int(c.openAfter.Seconds())))),
		// The original path of the request must also match, not only the path that nginx has normalized.
		block(line("if", "($request_uri", "!~", pathExpression(`([/?]|$)`)+")"), line("return", "404")),
	)
}

func pathExpression(end string) word {
	return word(`"^/(` + strings.Join(servedPaths, "|") + ")" + end + `"`)
}

// write writes a directive and its block to b, indented by depth levels.
func (d directive) write(b *strings.Builder, depth int) {
	b.WriteString(strings.Repeat("  ", depth))
	for i, w := range d.words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(w))
	}
	if d.block == nil {
		b.WriteString(";\n")
		return
	}
	b.WriteString(" {\n")
	for _, in := range d.block {
		in.write(b, depth+1)
	}
	b.WriteString(strings.Repeat("  ", depth) + "}\n")
}
