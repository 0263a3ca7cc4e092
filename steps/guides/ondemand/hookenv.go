package ondemand

import (
	"fmt"
	"regexp"
	"strings"

	"carrick/cluster/masked"
)

// envFile is a parsed hook.env. Upstream reads the file twice, and each line must be valid for both readers. First,
// bash sources the file. Then the hook exports the name before the first = of each line that does not begin with #.
// The hook runs under set -e, so an invalid name makes it exit.

type envFile struct {
	lines []envLine
	end   bool // whether the last line ends with a newline
}

// envLine is one line of hook.env, or one setting of a line with several settings.
type envLine struct {
	text string
	sep  string // separator before the next setting on the same line; "" for the last setting
	// exported is true for the first setting of a line and for settings after the word export. Only these settings are in
	// the environment of the hook's commands.
	exported bool

	key   string // "" if the line is not a setting
	value string
	odd   string // why carrick cannot determine the value
	note  string // comment after the value, including the whitespace before it
}

// envKey is a key of hook.env that upstream's hooks read.
type envKey struct {
	name   string
	ships  string // example value in upstream's package
	secret bool
	yaml   bool // envsubst inserts the value into YAML without quotes
	use    string
}

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

// parseEnvLine parses one line of hook.env. It excludes the CR of a Windows line ending from the value, and lint
// reports that CR.
func parseEnvLine(text string) (out []envLine) {
	text, cr := strings.CutSuffix(text, "\r")
	if cr {
		defer func() { out[len(out)-1].text += "\r" }()
	}
	exports := false // whether export precedes the setting
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

// place returns the line number of the setting f.lines[i], and the byte offset of the setting in that line.
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

// setting returns the last setting of key and its index in f.lines. bash uses the last setting.
func (f envFile) setting(key string) (envLine, int, bool) {
	for i := len(f.lines) - 1; i >= 0; i-- {
		if f.lines[i].key == key {
			return f.lines[i], i, true
		}
	}
	return envLine{}, 0, false
}

// get returns the value of key, or "" if key is not set. It returns an error for a value that only bash can evaluate.
func (f envFile) get(key string) (string, error) {
	line, at, ok := f.setting(key)
	if ok && line.odd != "" {
		at, _ := f.place(at)
		return "", fmt.Errorf("%s line %d: cannot read %s without running the file: %s", hookEnv, at, key, line.odd)
	}
	return line.value, nil
}

// secret is like get, but for values that must not be displayed. If get returns an error, secret returns an empty
// value.
func (f envFile) secret(key string) masked.Value {
	v, err := f.get(key)
	if err != nil {
		return masked.Value{}
	}
	return masked.New(v)
}

// String returns the content of the file.
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

// set replaces the last setting of key. If key is not set, set adds a line after a commented-out setting of key, or at
// the end of the file. It keeps a line that already has the value.
func (f *envFile) set(key, value string) error {
	if why := unfit(key, value); why != "" {
		return fmt.Errorf("%s cannot be set in %s: %s", key, hookEnv, why)
	}
	line := envLine{text: key + "=" + bashQuote(value), key: key, value: value, exported: true}
	have, at, ok := f.setting(key)
	if ok && have.unexported() {
		f.lines[at-1].sep = "" // moves the setting to its own line
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

// unexported reports whether the setting is not exported although envsubst in upstream's hook needs it.
func (l envLine) unexported() bool { return !l.exported && l.key == "NETWORK_POLICY_ALLOW_CIDR" }

// yamlSafe matches values that envsubst can insert into YAML without quotes.
var yamlSafe = regexp.MustCompile(`^[A-Za-z0-9./:_-]*$`)

// unfit returns why value cannot be stored in hook.env under key, or "" if it can. Shell metacharacters are allowed,
// because bashQuote quotes them and the hook's export reads only the name before the first = of a line.
func unfit(key, value string) string {
	for _, r := range value {
		switch {
		case r == '\n' || r == '\r':
			return "the value contains a line break, but upstream's hooks read the file line by line"
		case r < ' ' || r == 0x7f || r == '�':
			return "the value contains a nonprintable character"
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

func bashQuote(value string) string {
	switch {
	case value == "true" || value == "false":
		return value
	case !strings.ContainsAny(value, "\"$`\\!'"):
		return `"` + value + `"`
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
