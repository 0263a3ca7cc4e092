package ondemand

import (
	"fmt"
	"regexp"
	"strings"

	"carrick/cluster/masked"
)

// Upstream reads hook.env twice, and each line must work for both readers. First bash sources the file. Then the hook
// exports the names before the first = of each line that does not begin with #. The hook runs under set -e, so an
// invalid name ends it. A setting that only one of the readers recognizes has only part of its effect.

// envFile is a parsed hook.env.
type envFile struct {
	lines []envLine
	end   bool // the last line ends with a newline
}

// envLine is one line of hook.env, or one setting of a line with several settings.
type envLine struct {
	text string
	sep  string // separator before the next setting on the same line; "": the line ends here
	// exported means that the setting is in the environment of programs, because it is the first of its line or follows
	// the word export.
	exported bool

	key   string // "": the line is not a setting
	value string
	odd   string // the reason why the value cannot be determined without running the file
	note  string // the comment after the value, with the whitespace before it
}

// envKey is one key of hook.env.
type envKey struct {
	name   string
	ships  string // the value in the package's example
	secret bool
	yaml   bool // envsubst inserts it into YAML without quotes
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

// parseEnvLine parses a line into its settings. The CR of a Windows line ending is not part of a value. lint reports
// it.
func parseEnvLine(text string) (out []envLine) {
	text, cr := strings.CutSuffix(text, "\r")
	if cr {
		defer func() { out[len(out)-1].text += "\r" }()
	}
	exports := false // an export command precedes the setting
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

// place returns the line number of f.lines[i] and its byte offset in that line.
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

// setting returns the last setting of a key, which is the one that bash uses, and its index in f.lines.
func (f envFile) setting(key string) (envLine, int, bool) {
	for i := len(f.lines) - 1; i >= 0; i-- {
		if f.lines[i].key == key {
			return f.lines[i], i, true
		}
	}
	return envLine{}, 0, false
}

// get returns the value of a key, or "" if it is not set. It returns an error if the value cannot be determined without
// running the file.
func (f envFile) get(key string) (string, error) {
	line, at, ok := f.setting(key)
	if ok && line.odd != "" {
		at, _ := f.place(at)
		return "", fmt.Errorf("%s line %d: cannot read %s without running the file: %s", hookEnv, at, key, line.odd)
	}
	return line.value, nil
}

// secret returns the value of a key that must not be displayed.
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

// set sets a key to a value. It replaces an existing setting, or inserts a new line after a commented-out one or at the
// end of the file. A line that already has the value is unchanged.
func (f *envFile) set(key, value string) error {
	if why := unfit(key, value); why != "" {
		return fmt.Errorf("%s cannot be set in %s: %s", key, hookEnv, why)
	}
	line := envLine{text: key + "=" + bashQuote(value), key: key, value: value, exported: true}
	have, at, ok := f.setting(key)
	if ok && have.unexported() {
		f.lines[at-1].sep = "" // moves it to its own line
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

// unexported reports whether envsubst in upstream's hook needs the setting in its environment, but does not get it.
func (l envLine) unexported() bool { return !l.exported && l.key == "NETWORK_POLICY_ALLOW_CIDR" }

// yamlSafe matches values that envsubst can insert into YAML without quotes.
var yamlSafe = regexp.MustCompile(`^[A-Za-z0-9./:_-]*$`)

// unfit returns why a value cannot be stored in hook.env, or "" if it can. In single quotes bash changes neither $,
// backticks, backslashes, double quotes nor spaces. The second reader of hook.env ignores everything after the first =
// of a line.
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

// bashQuote quotes a value so that bash reads it back unchanged.
func bashQuote(value string) string {
	switch {
	case value == "true" || value == "false":
		return value
	case !strings.ContainsAny(value, "\"$`\\!'"):
		return `"` + value + `"`
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
