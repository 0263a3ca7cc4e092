package ondemand

import (
	"fmt"
	"regexp"
	"strings"

	"carrick/cluster"
)

// Upstream reads hook.env in two ways, and a line must survive both: bash
// sources it, and then exports the names that stand before the first = of each
// line that does not begin with #. What is no name there ends the hook (it runs
// under set -e), and what only one of the two takes for a setting is half lost.

// envFile is hook.env as it stands.
type envFile struct {
	lines []envLine
	end   bool // the last line ends with a line end
}

// envLine is one line; text is without its line end.
type envLine struct {
	text  string
	key   string // "": no setting
	value string
	odd   string // why its value can't be told without running it
	note  string // the comment behind the value, with the blanks before it
}

// envKey is one key of hook.env.
type envKey struct {
	name   string
	ships  string // what the package's example has
	secret bool
	yaml   bool // it is put into YAML by envsubst, unquoted
	use    string
}

// envKeys are all keys that upstream's hooks read.
var envKeys = []envKey{
	{name: "K8S_USERNAME_PREFIX", use: "set-k8s-creds.sh: before the user's name in their kubeconfig"},
	{name: "NAMESPACE_PREFIX", yaml: true, use: "k8s-bootstrap-ondemand.sh: before the user's name in the namespace's"},
	{name: "NETWORK_POLICY_ALLOW_CIDR", ships: "127.0.0.1/32", yaml: true, use: "k8s-bootstrap-ondemand.sh: who may reach users' pods"},
	{name: "IDP_ISSUER_URL", ships: "https://idp.example.com/auth/realms/main/protocol/openid-connect/token", use: "set-k8s-creds.sh"},
	{name: "CLIENT_ID", ships: "changeme", use: "set-k8s-creds.sh"},
	{name: "CLIENT_SECRET", ships: "changeme", secret: true, use: "set-k8s-creds.sh"},
	{name: "IMAGE_PULL_SECRET", yaml: true, use: "k8s-bootstrap-ondemand.sh: the name of the Secret that it makes"},
	{name: "REGISTRY_DOCKER_CONFIG_JSON", ships: "/some/path/to/docker/config.json", use: "k8s-bootstrap-ondemand.sh: what goes into that Secret"},
	{name: "USE_POD_SECURITY_POLICY", ships: "false", use: "k8s-bootstrap-ondemand.sh"},
	{name: "USE_JOB_POD_REAPER", ships: "false", use: "k8s-bootstrap-ondemand.sh"},
}

func envKeyOf(name string) *envKey {
	for i := range envKeys {
		if envKeys[i].name == name {
			return &envKeys[i]
		}
	}
	return nil
}

func envNames() []string {
	var out []string
	for _, k := range envKeys {
		out = append(out, k.name)
	}
	return out
}

var envSetting = regexp.MustCompile(`^[ \t]*([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)

// parseEnv reads a hook.env.
func parseEnv(text string) envFile {
	var f envFile
	if text == "" {
		return f
	}
	f.end = strings.HasSuffix(text, "\n")
	for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		line := envLine{text: l}
		if m := envSetting.FindStringSubmatch(l); m != nil {
			line.key = m[1]
			line.value, line.odd, line.note = bashValue(m[2])
		}
		f.lines = append(f.lines, line)
	}
	return f
}

// setting is what a key is set to: its last setting, as in bash.
func (f envFile) setting(key string) (envLine, int, bool) {
	for i := len(f.lines) - 1; i >= 0; i-- {
		if f.lines[i].key == key {
			return f.lines[i], i + 1, true
		}
	}
	return envLine{}, 0, false
}

// get is the value of a key; "" where it is not set. The error says why it can't
// be told.
func (f envFile) get(key string) (string, error) {
	line, at, ok := f.setting(key)
	if ok && line.odd != "" {
		return "", fmt.Errorf("%s line %d: what %s is can't be told without running it: %s", hookEnv, at, key, line.odd)
	}
	return line.value, nil
}

// secret is the value of a key that nobody may see.
func (f envFile) secret(key string) cluster.Masked {
	v, err := f.get(key)
	if err != nil {
		return cluster.Masked{}
	}
	return cluster.Mask(v)
}

// String is the file's text.
func (f envFile) String() string {
	var b strings.Builder
	for i, l := range f.lines {
		b.WriteString(l.text)
		if i+1 < len(f.lines) || f.end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// set has a key say a value: in the line where it is set, at the place of a line
// that has it commented out, or at the end. A line that says it already stays to
// the letter.
func (f *envFile) set(key, value string) error {
	if why := unfit(key, value); why != "" {
		return fmt.Errorf("%s can't stand in %s: %s", key, hookEnv, why)
	}
	line := envLine{text: key + "=" + bashQuote(value), key: key, value: value}
	have, at, ok := f.setting(key)
	switch {
	case ok && have.odd == "" && have.value == value && strings.HasPrefix(have.text, key):
		return nil
	case ok:
		line.note = have.note
		line.text += have.note
		f.lines[at-1] = line
		return nil
	}
	for i, l := range f.lines {
		if name, _, ok := strings.Cut(strings.TrimLeft(l.text, "# \t"), "="); ok && name == key && strings.HasPrefix(l.text, "#") {
			f.lines = append(f.lines[:i+1:i+1], append([]envLine{line}, f.lines[i+1:]...)...)
			return nil
		}
	}
	f.lines = append(f.lines, line)
	f.end = true
	return nil
}

// yamlSafe is what may stand in the YAML that envsubst fills in, unquoted.
var yamlSafe = regexp.MustCompile(`^[A-Za-z0-9./:_-]*$`)

// unfit says why a value can't stand in hook.env; "": it can. Single quotes keep
// all else from bash: $, backticks, backslashes, double quotes, spaces. The other
// reader never sees what is behind the first =, unless it is on a line of its own.
func unfit(key, value string) string {
	for _, r := range value {
		switch {
		case r == '\n' || r == '\r':
			return "there is a line break in it, and upstream's hooks read the file line by line"
		case r < ' ' || r == 0x7f || r == '�':
			return "there is a character in it that can't be shown"
		}
	}
	if k := envKeyOf(key); k != nil && k.yaml && !yamlSafe.MatchString(value) {
		return fmt.Sprintf("upstream's hook puts %s into YAML as it stands, and it has more than letters, digits, dots, slashes, colons, - and _", quoted(value))
	}
	return ""
}

// bashQuote is a value as bash reads it back, whatever is in it.
func bashQuote(value string) string {
	switch {
	case value == "true" || value == "false":
		return value
	case !strings.ContainsAny(value, "\"$`\\!'"):
		return `"` + value + `"`
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
