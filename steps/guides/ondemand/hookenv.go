package ondemand

import (
	"fmt"
	"regexp"
	"strings"

	"carrick/cluster/masked"
)

// Upstream reads hook.env in two ways, and a line must survive both: bash
// sources it, and then exports the names before the first = of each
// line that does not begin with #. What is no name there ends the hook (it runs
// under set -e), and what only one of the two takes for a setting is half lost.

// envFile is a parsed hook.env.
type envFile struct {
	lines []envLine
	end   bool // the last line ends with a line end
}

// envLine is one line, or one setting of a line that has several; text is without its line end.
type envLine struct {
	text string
	sep  string // what is between this setting and the next one of the same line; "": a line end
	// exported means that programs see the setting: it is the first of its line, or behind the word export.
	exported bool

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
	{name: "K8S_USERNAME_PREFIX", use: "set-k8s-creds.sh: prefix of the user's name in their kubeconfig"},
	{name: "NAMESPACE_PREFIX", yaml: true, use: "k8s-bootstrap-ondemand.sh: prefix of the user's namespace"},
	{
		name: "NETWORK_POLICY_ALLOW_CIDR", ships: "127.0.0.1/32", yaml: true,
		use: "k8s-bootstrap-ondemand.sh: addresses that can reach users' pods",
	},
	{
		name: "IDP_ISSUER_URL", ships: "https://idp.example.com/auth/realms/main/protocol/openid-connect/token",
		use: "set-k8s-creds.sh",
	},
	{name: "CLIENT_ID", ships: "changeme", use: "set-k8s-creds.sh"},
	{name: "CLIENT_SECRET", ships: "changeme", secret: true, use: "set-k8s-creds.sh"},
	{name: "IMAGE_PULL_SECRET", yaml: true, use: "k8s-bootstrap-ondemand.sh: the name of the Secret that it creates"},
	{
		name: "REGISTRY_DOCKER_CONFIG_JSON", ships: "/some/path/to/docker/config.json",
		use: "k8s-bootstrap-ondemand.sh: the content of that Secret",
	},
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

var envSetting = regexp.MustCompile(`^[ \t]*(export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)

// parseEnv reads a hook.env.
func parseEnv(text string) envFile {
	var f envFile
	if text == "" {
		return f
	}
	f.end = strings.HasSuffix(text, "\n")
	for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		f.lines = append(f.lines, parseEnvLine(l)...)
	}
	return f
}

// parseEnvLine reads a line. The CR of a line that ends as on Windows is no part of a value: lint reports it.
func parseEnvLine(text string) (out []envLine) {
	text, cr := strings.CutSuffix(text, "\r")
	if cr {
		defer func() { out[len(out)-1].text += "\r" }()
	}
	exports := false // the command is export
	for {
		m := envSetting.FindStringSubmatch(text)
		if m == nil {
			return append(out, envLine{text: text})
		}
		w := bashValue(m[3])
		exports = exports || m[1] != ""
		line := envLine{text: text, key: m[2], odd: w.odd, exported: exports || len(out) == 0}
		if w.odd == "" {
			line.value, line.note, line.sep = w.out.String(), w.note, w.sep
		}
		if line.sep == "" {
			return append(out, line)
		}
		line.text = text[:len(text)-len(w.sep)-len(w.rest)]
		out = append(out, line)
		text = w.rest
		exports = exports && strings.Trim(w.sep, " \t") == ""
	}
}

// place returns the number of the line that an element of f.lines is on, and how far into it.
func (f envFile) place(i int) (line, offset int) {
	line = 1
	for _, l := range f.lines[:i] {
		offset += len(l.text) + len(l.sep)
		if l.sep == "" {
			line, offset = line+1, 0
		}
	}
	return line, offset
}

// setting is what a key is set to, its last setting as in bash, and where that is in f.lines.
func (f envFile) setting(key string) (envLine, int, bool) {
	for i := len(f.lines) - 1; i >= 0; i-- {
		if f.lines[i].key == key {
			return f.lines[i], i, true
		}
	}
	return envLine{}, 0, false
}

// get is the value of a key; "" where it is not set. The error says why it can't
// be told.
func (f envFile) get(key string) (string, error) {
	line, at, ok := f.setting(key)
	if ok && line.odd != "" {
		at, _ := f.place(at)
		return "", fmt.Errorf("%s line %d: cannot read %s without running the file: %s", hookEnv, at, key, line.odd)
	}
	return line.value, nil
}

// secret is the value of a key that must not be shown.
func (f envFile) secret(key string) masked.Value {
	v, err := f.get(key)
	if err != nil {
		return masked.Value{}
	}
	return masked.New(v)
}

// String is the file's text.
func (f envFile) String() string {
	var b strings.Builder
	for i, l := range f.lines {
		b.WriteString(l.text + l.sep)
		if l.sep == "" && (i+1 < len(f.lines) || f.end) {
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
		return fmt.Errorf("%s cannot be set in %s: %s", key, hookEnv, why)
	}
	line := envLine{text: key + "=" + bashQuote(value), key: key, value: value, exported: true}
	have, at, ok := f.setting(key)
	if ok && have.unexported() {
		f.lines[at-1].sep = "" // it gets a line of its own
	}
	switch {
	case ok && have.odd == "" && have.value == value:
		return nil
	case ok:
		line.note, line.sep = have.note, have.sep
		line.text += have.note
		if m := envSetting.FindStringSubmatch(have.text); m != nil {
			line.text = m[1] + line.text
		}
		f.lines[at] = line
		return nil
	}
	for i, l := range f.lines {
		if name, _, ok := strings.Cut(strings.TrimLeft(l.text, "# \t"), "="); ok && name == key &&
			strings.HasPrefix(l.text, "#") {
			f.lines = append(f.lines[:i+1:i+1], append([]envLine{line}, f.lines[i+1:]...)...)
			return nil
		}
	}
	f.lines = append(f.lines, line)
	f.end = true
	return nil
}

// unexported reports whether upstream's hook needs the setting in the environment, for envsubst, and does not get it.
func (l envLine) unexported() bool { return !l.exported && l.key == "NETWORK_POLICY_ALLOW_CIDR" }

// yamlSafe matches what can be put into the YAML that envsubst fills in, unquoted.
var yamlSafe = regexp.MustCompile(`^[A-Za-z0-9./:_-]*$`)

// unfit says why a value can't stand in hook.env; "": it can. Single quotes keep
// all else from bash: $, backticks, backslashes, double quotes, spaces. The other
// reader never sees what is behind the first =, unless it is on a line of its own.
func unfit(key, value string) string {
	for _, r := range value {
		switch {
		case r == '\n' || r == '\r':
			return "the value has a line break, and upstream's hooks read the file line by line"
		case r < ' ' || r == 0x7f || r == '�':
			return "the value has a character that is not printable"
		}
	}
	if k := envKeyOf(key); k != nil && k.yaml && !yamlSafe.MatchString(value) {
		return fmt.Sprintf(
			"upstream's hook puts %s into YAML without quotes, so use only letters, digits, dots, slashes, colons, - and _",
			shownWord(value),
		)
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
