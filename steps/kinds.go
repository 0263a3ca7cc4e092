package steps

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// AnswerKind is the type of an answer. Each kind has its own validation.
type AnswerKind string

const (
	Text      AnswerKind = "text"
	Name      AnswerKind = "name"      // RFC 1123 subdomain, as for most objects
	Namespace AnswerKind = "namespace" // RFC 1123 label
	HostName  AnswerKind = "host"      // DNS name or IP address, no port
	Port      AnswerKind = "port"
	Number    AnswerKind = "number" // a whole number, 0 or more
	CIDR      AnswerKind = "CIDR"
	Label     AnswerKind = "label" // key=value
	Quantity  AnswerKind = "quantity"
	URL       AnswerKind = "URL" // https or http
	Path      AnswerKind = "path"
	YesNo     AnswerKind = "yes or no"
	Pick      AnswerKind = "choice"
	YAML      AnswerKind = "YAML" // one YAML document, as a multi-line string
)

var hostLabel = regexp.MustCompile(`^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$`)

// parse validates a typed answer and converts it. It returns an int for Port and Number, a bool for YesNo, and
// otherwise a string.
func (k AnswerKind) parse(s string, of []Choice) (any, error) {
	switch k {
	case Text:
		return s, nil
	case YAML:
		return parseYAML(s)
	case Name:
		if len(validation.IsDNS1123Subdomain(s)) > 0 {
			return nil, fmt.Errorf("%q is not a name: use lower-case letters, digits, - and ., at most 253 characters", s)
		}
		return s, nil
	case Namespace:
		if len(validation.IsDNS1123Label(s)) > 0 {
			return nil, fmt.Errorf("%q is not a namespace name: use lower-case letters, digits and -, at most 63 characters", s)
		}
		return s, nil
	case HostName:
		return s, checkHost(s)
	case Port:
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("%q is not a port: enter a number from 1 to 65535", s)
		}
		return n, nil
	case Number:
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not a whole number of at least 0", s)
		}
		return n, nil
	case CIDR:
		p, err := netip.ParsePrefix(s)
		if err != nil || p.Masked() != p {
			return nil, fmt.Errorf("%q is not a CIDR such as 10.1.0.0/16", s)
		}
		return s, nil
	case Label:
		return s, checkLabel(s)
	case Quantity:
		if n, err := resource.ParseQuantity(s); err != nil || n.Sign() < 0 {
			return nil, fmt.Errorf("%q is not a quantity such as 500m, 4 or 16Gi", s)
		}
		return s, nil
	case URL:
		u, err := url.Parse(s)
		if err != nil || checkHost(u.Hostname()) != nil || (u.Scheme != "https" && u.Scheme != "http") || u.User != nil ||
			badPort(u.Port()) {
			return nil, fmt.Errorf("%q is not a URL such as https://example.org", s)
		}
		return s, nil
	case Path:
		if !path.IsAbs(s) || path.Clean(s) != s {
			return nil, fmt.Errorf("%q is not an absolute path, or contains . or .. or //", s)
		}
		return s, nil
	case YesNo:
		switch strings.ToLower(s) {
		case "y", "yes", "true":
			return true, nil
		case "n", "no", "false":
			return false, nil
		}
		return nil, fmt.Errorf("%q is neither yes nor no", s)
	case Pick:
		var names []string
		for _, c := range of {
			if c.Value == s {
				return s, nil
			}
			names = append(names, c.Value)
		}
		return nil, fmt.Errorf("%q is not one of %s", s, strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("unknown kind of answer %q", k)
}

// badPort reports whether port is not empty and not a valid port number.
func badPort(port string) bool {
	n, err := strconv.Atoi(port)
	return port != "" && (err != nil || n < 1 || n > 65535)
}

func checkHost(s string) error {
	if _, err := netip.ParseAddr(s); err == nil {
		return nil
	}
	for _, l := range strings.Split(s, ".") {
		if !hostLabel.MatchString(l) || len(l) > 63 {
			return fmt.Errorf("%q is not a host name or an IP address (no scheme, no port, no path)", s)
		}
	}
	if len(s) > 253 {
		return fmt.Errorf("a host name has at most 253 characters, but this name has %d", len(s))
	}
	return nil
}

func checkLabel(s string) error {
	key, value, ok := strings.Cut(s, "=")
	if !ok {
		return fmt.Errorf("%q is not a label such as key=value", s)
	}
	if err := first(validation.IsQualifiedName(key)); err != nil {
		return fmt.Errorf("label key %q: %w", key, err)
	}
	if err := first(validation.IsValidLabelValue(value)); err != nil {
		return fmt.Errorf("label value %q: %w", value, err)
	}
	return nil
}

func first(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%s", problems[0])
}
