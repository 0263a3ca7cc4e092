package ondemand

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"carrick/cluster/clean"
	"carrick/cluster/masked"
	"carrick/cluster/probe"
)

// dockerHubKey is the key for Docker Hub's login in Docker's config.json.
const dockerHubKey = "https://index.docker.io/v1/"

type registryLogin struct {
	Host     string // host[:port], or dockerHubKey
	User     string
	Password masked.Value
}

// errWrapped is returned for base64 text with line breaks. Without -w0, the base64 command inserts a line break after
// every 76 characters.
var errWrapped = errors.New("the base64 is split over several lines, but JSON strings cannot contain line breaks. " +
	"The published guide's base64 breaks lines after 76 characters")

// registryKey returns the key under auths for host.
func registryKey(host string) string {
	if probe.RegistryHost(host) == probe.RegistryHost("docker.io") {
		return dockerHubKey
	}
	return host
}

// encodeRegistry returns image-registry.json in the format of Docker's config.json.
func encodeRegistry(l registryLogin) (masked.Value, error) {
	if err := probe.ValidRegistry(l.Host); err != nil {
		return masked.Value{}, fmt.Errorf("registry.host: %w", err)
	}
	if err := validUser(l.User); err != nil {
		return masked.Value{}, fmt.Errorf("registry.user: %w", err)
	}
	if err := validPassword(l.Password.Reveal()); err != nil {
		return masked.Value{}, fmt.Errorf("registry.password: %w", err)
	}
	type entry struct {
		Auth string `json:"auth"`
	}
	file := struct {
		Auths map[string]entry `json:"auths"`
	}{
		map[string]entry{
			registryKey(l.Host): {base64.StdEncoding.EncodeToString([]byte(l.User + ":" + l.Password.Reveal()))},
		},
	}
	data, err := json.MarshalIndent(file, "", "  ")
	return masked.New(string(data) + "\n"), err
}

func validUser(user string) error {
	switch {
	case user == "":
		return errors.New("it is empty")
	case strings.Contains(user, ":"):
		return errors.New("it contains a colon, which separates the name from the password")
	case strings.ContainsFunc(user, unicode.IsControl):
		return errors.New("it contains a line break or another control character")
	}
	return nil
}

// validPassword validates a registry password. Its errors never contain the password.
func validPassword(password string) error {
	switch {
	case password == "":
		return errors.New("it is empty")
	case strings.ContainsFunc(password, unicode.IsControl):
		return errors.New(
			"it contains a line break or another control character; check that the given file does not end with a line break",
		)
	}
	return nil
}

// decodeRegistry parses data in the format of Docker's config.json, as the kubelet does. It sorts the logins by host.
// Its errors contain no part of a login.
func decodeRegistry(data []byte) ([]registryLogin, error) {
	var file struct {
		Auths map[string]struct {
			Auth     string `json:"auth"`
			Username string `json:"username"`
			Password string `json:"password"`
		} `json:"auths"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, notRegistryJSON(data, err)
	}
	if len(file.Auths) == 0 {
		return nil, errors.New(`no registry under "auths"`)
	}
	var out []registryLogin
	for host, a := range file.Auths {
		l := registryLogin{Host: host, User: a.Username, Password: masked.New(a.Password)}
		if a.Auth != "" {
			user, password, err := decodeAuth(a.Auth)
			if err != nil {
				return nil, fmt.Errorf("auths %q: %w", clean.Text(host), err)
			}
			l.User, l.Password = user, masked.New(password)
		}
		if l.User == "" || l.Password.IsZero() {
			return nil, fmt.Errorf("auths %q: no user and password", clean.Text(host))
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b registryLogin) int { return strings.Compare(a.Host, b.Host) })
	return out, nil
}

func decodeAuth(auth string) (user, password string, err error) {
	if strings.ContainsAny(auth, "\r\n") {
		return "", "", errWrapped
	}
	plain, err := base64.StdEncoding.DecodeString(auth)
	if err != nil {
		return "", "", errors.New("auth is not base64")
	}
	user, password, ok := strings.Cut(string(plain), ":")
	switch {
	case !ok || user == "" || password == "":
		return "", "", errors.New("auth is not USER:PASSWORD in base64")
	case strings.HasSuffix(password, "\n"):
		return "", "", errors.New("the password in auth ends with a line break, which echo adds without -n")
	}
	return user, password, nil
}

// notRegistryJSON returns the error for an invalid registry file. The error contains the line number of a syntax error,
// but no part of the file.
func notRegistryJSON(data []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return errors.New("not in the format of Docker's config.json")
	}
	at := min(int(syntax.Offset), len(data))
	line := 1 + bytes.Count(data[:at], []byte("\n"))
	if at > 0 && data[at-1] == '\n' {
		line-- // the invalid character is the newline at the end of the previous line
		if wraps(data, at) {
			return fmt.Errorf("line %d: %w", line, errWrapped)
		}
	}
	return fmt.Errorf("line %d: not valid JSON", line)
}

// wraps reports whether a line ends inside a base64 string. at is the offset of the end of the line.
func wraps(data []byte, at int) bool {
	lines := bytes.Split(data[:at-1], []byte("\n"))
	last := lines[len(lines)-1]
	start := bytes.LastIndexByte(last, '"') + 1
	word := last[start:]
	return len(word) >= 64 &&
		len(bytes.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")) == 0
}
