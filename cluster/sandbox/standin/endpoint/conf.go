package endpoint

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// machine maps paths and ports in a container to paths and ports on this machine. Everything else in the container's
// nginx.conf stays unchanged.
type machine struct {
	mounts   map[string]string                        // container path to path on this machine
	dir      string                                   // parent directory for paths that are not mounted
	upstream string                                   // host:port of the API server
	listen   func(port int) (address string, ok bool) // returns the address on this machine for a container port
}

// pathed lists the directives whose first argument is a path.
var pathed = []string{
	"pid", "error_log", "access_log", "include", "root", "ssl_certificate", "ssl_certificate_key",
	"ssl_client_certificate",
	"ssl_trusted_certificate", "ssl_dhparam", "proxy_ssl_trusted_certificate", "proxy_ssl_certificate",
	"proxy_ssl_certificate_key",
	"client_body_temp_path", "proxy_temp_path", "fastcgi_temp_path", "uwsgi_temp_path", "scgi_temp_path",
}

// defaults lists the directives in the http block whose compiled-in default depends on the build of nginx.
var defaults = []string{
	"access_log", "client_body_temp_path", "proxy_temp_path", "fastcgi_temp_path", "uwsgi_temp_path", "scgi_temp_path",
}

// token is a word, one of {, } and ;, or the white space and comments in between.
type token struct {
	text  string
	blank bool
}

// tokens splits a configuration. The tokens joined together are the unchanged configuration.
func tokens(conf string) []token {
	var all []token
	for conf != "" {
		n, blank := piece(conf)
		all = append(all, token{conf[:n], blank})
		conf = conf[n:]
	}
	return all
}

func piece(s string) (n int, blank bool) {
	switch c := s[0]; {
	case strings.ContainsRune(" \t\r\n", rune(c)):
		return len(s) - len(strings.TrimLeft(s, " \t\r\n")), true
	case c == '#':
		if end := strings.IndexByte(s, '\n'); end >= 0 {
			return end, true
		}
		return len(s), true
	case c == '{' || c == '}' || c == ';':
		return 1, false
	case c == '"' || c == '\'':
		for i := 1; i < len(s); i++ {
			if s[i] == '\\' {
				i++
			} else if s[i] == c {
				return i + 1, false
			}
		}
		return len(s), false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '{' && i > 0 && s[i-1] == '$': // ${name}
			if end := strings.IndexByte(s[i:], '}'); end >= 0 {
				i += end
			}
		case strings.ContainsRune(" \t\r\n;{", rune(c)):
			return i, false
		}
	}
	return len(s), false
}

// adapt translates a container's configuration for this machine.
func (m *machine) adapt(conf string) (string, error) {
	all := tokens(conf)
	var out strings.Builder
	var blocks []string // names of the enclosing blocks
	var words []int     // indexes of the current directive's tokens
	own := map[string]bool{}
	http := -1 // offset of the http block in out
	for i := range all {
		switch t := all[i]; {
		case t.blank:
		case t.text == ";":
			if err := m.directive(all, words, blocks, own); err != nil {
				return "", err
			}
			words = nil
		case t.text == "{":
			name := ""
			if len(words) > 0 {
				name = all[words[0]].text
			}
			blocks, words = append(blocks, name), nil
		case t.text == "}":
			blocks, words = blocks[:max(0, len(blocks)-1)], nil
		default:
			words = append(words, i)
		}
	}
	depth := 0
	for i, t := range all {
		out.WriteString(t.text)
		if t.text == "{" {
			if depth == 0 && http < 0 && before(all, i) == "http" {
				http = out.Len()
			}
			depth++
		} else if t.text == "}" {
			depth--
		}
	}
	text := out.String()
	if http < 0 {
		return text, nil
	}
	var more strings.Builder
	for _, name := range defaults {
		if !own[name] {
			fmt.Fprintf(&more, " %s %s;", name, filepath.Join(m.dir, name))
		}
	}
	return text[:http] + more.String() + text[http:], nil
}

// adaptFile adapts an included file in place.
func (m *machine) adaptFile(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text, err := m.adapt(string(data))
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o600)
}

// before returns the last word before token i.
func before(all []token, i int) string {
	for i--; i >= 0; i-- {
		if !all[i].blank {
			return all[i].text
		}
	}
	return ""
}

// directive translates the paths and addresses in one directive. words contains the indexes of its name and arguments.
func (m *machine) directive(all []token, words []int, blocks []string, own map[string]bool) error {
	if len(words) < 2 {
		return nil
	}
	name, first := all[words[0]].text, &all[words[1]].text
	if slices.Equal(blocks, []string{"http"}) {
		own[name] = true
	}
	switch {
	case slices.Contains(pathed, name):
		*first = m.path(*first)
	case name == "listen":
		return m.hear(first)
	case name == "proxy_pass" || name == "grpc_pass" || name == "server" && slices.Contains(blocks, "upstream"):
		*first = m.toward(*first)
	case name == "resolver": // not needed: the name is replaced with an address
		if strings.HasSuffix(*first, ".cluster.local") {
			*first = loopback
		}
	case name == "set" && len(words) == 3:
		value := &all[words[2]].text
		*value = m.toward(*value)
	}
	return nil
}

// path translates a path in the container.
func (m *machine) path(text string) string {
	plain := strings.Trim(text, `"'`)
	if !strings.HasPrefix(plain, "/") {
		return text
	}
	switch plain {
	case "/dev/stderr", "/dev/stdout", "/dev/null":
		return text
	}
	best := ""
	for at := range m.mounts {
		if (plain == at || strings.HasPrefix(plain, strings.TrimRight(at, "/")+"/")) && len(at) > len(best) {
			best = at
		}
	}
	if best == "" {
		return filepath.Join(m.dir, "none", plain) // not mounted: part of the image, or missing
	}
	return m.mounts[best] + strings.TrimPrefix(plain, strings.TrimRight(best, "/"))
}

// hear translates a listen directive. It replaces the container port with a loopback address.
func (m *machine) hear(text *string) error {
	host, port, err := net.SplitHostPort(*text)
	if err != nil {
		host, port = "", *text
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return fmt.Errorf("stand-in: listen %q has no port", *text)
	}
	address, ok := m.listen(n)
	if !ok {
		return fmt.Errorf("stand-in: no free port can replace port %d", n)
	}
	if strings.Contains(host, ":") || strings.HasPrefix(*text, "[") { // IPv6: use the same port on ::1
		_, here, _ := net.SplitHostPort(address)
		address = net.JoinHostPort("::1", here)
	}
	*text = address
	return nil
}

// toward replaces the API server's in-cluster name with its address.
func (m *machine) toward(text string) string {
	for _, name := range []string{"kubernetes.default.svc.cluster.local", "kubernetes.default.svc", "kubernetes.default"} {
		i := strings.Index(text, name)
		if i < 0 {
			continue
		}
		rest := text[i+len(name):]
		if strings.HasPrefix(rest, ":") {
			rest = strings.TrimLeft(rest[1:], "0123456789")
		}
		return text[:i] + m.upstream + rest
	}
	return text
}
