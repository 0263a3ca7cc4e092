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

// dockerHubKey is the key under which docker and the kubelet look up the login for Docker Hub.
const dockerHubKey = "https://index.docker.io/v1/"

// registryLogin is one login of an image registry.
type registryLogin struct {
	Host     string // host[:port], or dockerHubKey
	User     string
	Password masked.Value
}

// errWrapped means that the base64 of a login is split over several lines. base64 without -w0 does so for a long one.
var errWrapped = errors.New("the base64 is split over several lines: the published page's base64 breaks lines after " +
	"76 characters, and JSON strings cannot contain line breaks")

// registryKey returns the key of a registry in the file.
func registryKey(host string) string {
	if probe.RegistryHost(host) == probe.RegistryHost("docker.io") {
		return dockerHubKey
	}
	return host
}

// encodeRegistry returns image-registry.json, a file in the format of Docker's config.json, with one login.
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
		return errors.New("it contains a colon: registries end the name there")
	case strings.ContainsFunc(user, unicode.IsControl):
		return errors.New("it contains a line break or another control character")
	}
	return nil
}

// validPassword validates a password. Its errors never contain the password.
func validPassword(password string) error {
	switch {
	case password == "":
		return errors.New("it is empty")
	case strings.ContainsFunc(password, unicode.IsControl):
		return errors.New("it contains a line break or another control character; does the given file end with one?")
	}
	return nil
}

// decodeRegistry parses such a file as the kubelet does. Errors contain no part of a login.
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
		return "", "", errors.New("the password in auth ends with a line break, as echo without -n adds it")
	}
	return user, password, nil
}

// notRegistryJSON returns an error that describes why a file is not valid JSON, and where.
func notRegistryJSON(data []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return errors.New("not in the format of Docker's config.json")
	}
	at := min(int(syntax.Offset), len(data))
	line := 1 + bytes.Count(data[:at], []byte("\n"))
	if at > 0 && data[at-1] == '\n' {
		line-- // the newline itself is the error
		if wraps(data, at) {
			return fmt.Errorf("line %d: %w", line, errWrapped)
		}
	}
	return fmt.Errorf("line %d: not valid JSON", line)
}

// wraps reports whether a line ends within base64 that was wrapped after 76 characters.
func wraps(data []byte, at int) bool {
	lines := bytes.Split(data[:at-1], []byte("\n"))
	last := lines[len(lines)-1]
	start := bytes.LastIndexByte(last, '"') + 1
	word := last[start:]
	return len(word) >= 64 &&
		len(bytes.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")) == 0
}
