package interlink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"carrick/cluster/clean"
	"carrick/cluster/masked"
	"carrick/cluster/nearest"
	"carrick/steps"
	"carrick/steps/action"
)

// pluginKeys lists the keys that the plugin reads. The plugin ignores all other keys
// (interlink-hq/interlink-slurm-plugin: pkg/slurm/types.go, f8451d93).
var pluginKeys = []string{
	"VKConfigPath", "SbatchPath", "ScancelPath", "SqueuePath", "SinfoPath", "SidecarPort", "Socket", "ExportPodData",
	"CommandPrefix", "ImagePrefix", "DataRootFolder", "Namespace", "Tsocks", "TsocksPath", "TsocksLoginNode", "BashPath",
	"VerboseLogging", "ErrorsOnlyLogging", "SingularityDefaultOptions", "SingularityPrefix", "SingularityPath",
	"EnableProbes", "EnrootDefaultOptions", "EnrootPrefix", "EnrootPath", "ContainerRuntime", "Flavors", "DefaultFlavor",
	"DefaultUID", "Taints", "ResourceScriptPath",
}

// pluginConfig is the content of SlurmConfig.yaml on the edge node.
type pluginConfig struct {
	text string
	top  *yaml.Node // the top-level mapping; nil if there is none
	bad  error      // the parse error; nil if the text is valid
}

func openPlugin(ctx context.Context, e steps.Env) (pluginConfig, error) {
	b, err := e.Host.Read(ctx, pluginPath(e))
	if err != nil {
		return pluginConfig{}, err
	}
	return parsePlugin(string(b)), nil
}

func parsePlugin(text string) pluginConfig {
	c := pluginConfig{text: text}
	var doc yaml.Node
	if c.bad = yaml.Unmarshal([]byte(text), &doc); c.bad != nil || len(doc.Content) == 0 {
		return c
	}
	if c.top = doc.Content[0]; c.top.Kind != yaml.MappingNode {
		c.top, c.bad = nil, errors.New("not a mapping of keys and values")
		return c
	}
	c.bad = duplicate(c.top)
	return c
}

// duplicate returns an error if a mapping in n contains a key twice. The plugin's parser, goccy/go-yaml v1.18.0,
// decodes nothing in this case, and the plugin ignores the parser's error.
func duplicate(n *yaml.Node) error {
	lines := map[string]int{}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if first, ok := lines[child.Value]; ok {
				return fmt.Errorf("line %d: %s is already set on line %d, so the plugin ignores the whole file",
					child.Line, child.Value, first)
			}
			lines[child.Value] = child.Line
		}
		if err := duplicate(child); err != nil {
			return err
		}
	}
	return nil
}

// value returns the node of key, or nil if key is not set.
func (c pluginConfig) value(key string) *yaml.Node {
	if c.top == nil {
		return nil
	}
	for i := 0; i+1 < len(c.top.Content); i += 2 {
		if c.top.Content[i].Value == key {
			return c.top.Content[i+1]
		}
	}
	return nil
}

func (c pluginConfig) word(key string) string {
	if n := c.value(key); n != nil && n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		return n.Value
	}
	return ""
}

// flag reports whether the plugin reads key as true. The plugin's parser, goccy/go-yaml, accepts only true, True and
// TRUE without quotes. For all other values, including yes and on of YAML 1.1, the parser returns an error. The plugin
// ignores this error, and the key stays false (interlink-hq/interlink-slurm-plugin: pkg/slurm/func.go, f8451d93).
func (c pluginConfig) flag(key string) bool {
	n := c.value(key)
	if n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n == nil || n.Kind != yaml.ScalarNode || !slices.Contains([]string{"true", "True", "TRUE"}, n.Value) {
		return false
	}
	return n.Style == 0 || n.Style == yaml.TaggedStyle && n.Tag == "!!bool"
}

// unknown describes the keys that the plugin ignores and that resemble one of pluginKeys, so they are probably
// misspelled.
func (c pluginConfig) unknown() []string {
	var out []string
	if c.top == nil {
		return nil
	}
	for i := 0; i+1 < len(c.top.Content); i += 2 {
		key := c.top.Content[i].Value
		known := false
		for _, k := range pluginKeys {
			known = known || k == key
		}
		if near := nearest.Name(key, pluginKeys); !known && (near != "" || strings.EqualFold(key, "exportpoddata")) {
			out = append(out, fmt.Sprintf("%s (line %d; did you mean %s?)", clean.Text(key), c.top.Content[i].Line, near))
		}
	}
	return out
}

// exporting returns the file's text with ExportPodData set to true. The rest of the text is unchanged.
func (c pluginConfig) exporting() (string, error) {
	const key = "ExportPodData"
	if c.bad != nil {
		return "", fmt.Errorf("carrick does not edit a file that it cannot read: %s", clean.Text(c.bad.Error()))
	}
	if c.flag(key) {
		return c.text, nil
	}
	out, err := c.set(key)
	if err != nil {
		return "", err
	}
	if now := parsePlugin(out); !now.flag(key) || !reflect.DeepEqual(now.without(key), c.without(key)) {
		return "", fmt.Errorf("carrick cannot set %s without changing other keys; set it manually", key)
	}
	return out, nil
}

// set returns the file's text with key set to true. It replaces an existing value in place. If key is missing, set
// appends it.
func (c pluginConfig) set(key string) (string, error) {
	n := c.value(key)
	switch {
	case n == nil:
		text := c.text
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return text + key + ": true\n", nil
	case n.Kind != yaml.ScalarNode:
		return "", fmt.Errorf("line %d: %s is not a single value", n.Line, key)
	}
	if err := action.PlainLines(c.text); err != nil {
		return "", err
	}
	lines := strings.Split(c.text, "\n")
	at := strings.Index(lines[n.Line-1], key)
	colon := -1
	if at >= 0 {
		colon = strings.IndexByte(lines[n.Line-1][at:], ':')
	}
	if colon < 0 {
		return "", fmt.Errorf("line %d: the value of %s is on another line", n.Line, key)
	}
	lines[n.Line-1] = lines[n.Line-1][:at+colon+1] + " true"
	if n.LineComment != "" {
		lines[n.Line-1] += " " + n.LineComment
	}
	return strings.Join(lines, "\n"), nil
}

// without returns the values of all keys except key, or nil if they cannot be decoded.
func (c pluginConfig) without(key string) map[string]any {
	out := map[string]any{}
	if c.top != nil && c.top.Decode(&out) != nil {
		return nil
	}
	delete(out, key)
	return out
}

// pluginConfigFile edits the plugin's configuration in place and keeps its mode.
type pluginConfigFile struct{}

func (pluginConfigFile) file(ctx context.Context, e steps.Env) (action.File, error) {
	f := action.File{
		PathOf: pluginPath, Mode: 0o600, Content: func(ctx context.Context, e steps.Env) (masked.Value, error) {
			c, err := openPlugin(ctx, e)
			if errors.Is(err, fs.ErrNotExist) {
				return masked.Value{}, steps.Absent(
					"%s does not exist on the edge node: set plugin.config to the path that the plugin reads", pluginPath(e),
				)
			}
			if err != nil {
				return masked.Value{}, err
			}
			text, err := c.exporting()
			return masked.New(text), err
		},
	}
	info, err := e.Host.Stat(ctx, pluginPath(e))
	switch {
	case err == nil:
		f.Mode = info.Mode.Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return f, err
	}
	return f, nil
}

// Plan shows the line that changes.
func (p pluginConfigFile) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	f, err := p.file(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	return f.Plan(ctx, e)
}

// Do writes the file.
func (p pluginConfigFile) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	f, err := p.file(ctx, e)
	if err != nil {
		return err
	}
	return f.Do(ctx, e, say)
}

// PlanUndo shows the text that is restored.
func (p pluginConfigFile) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	f, err := p.file(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	return f.PlanUndo(ctx, e)
}

// Undo restores the previous text.
func (p pluginConfigFile) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	f, err := p.file(ctx, e)
	if err != nil {
		return err
	}
	return f.Undo(ctx, e, say)
}

// Export returns only the line to set. It omits the file, which belongs to the site and can contain confidential
// settings.
func (pluginConfigFile) Export(_ context.Context, e steps.Env) ([]action.Exported, error) {
	return []action.Exported{
		{Hand: "# on the edge node, in " + pluginPath(e) + ": ExportPodData: true, then restart the plugin"},
	}, nil
}

// atRun is a function that builds a command from the answers. As an action, it runs this command.
type atRun func(context.Context, steps.Env) (action.Command, error)

// Plan shows the command line.
func (r atRun) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := r(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	return c.Plan(ctx, e)
}

// Do runs the command.
func (r atRun) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	c, err := r(ctx, e)
	if err != nil {
		return err
	}
	return c.Do(ctx, e, say)
}

// PlanUndo shows the command that reverts the action.
func (r atRun) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := r(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	return c.PlanUndo(ctx, e)
}

// Undo runs the command that reverts the action.
func (r atRun) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	c, err := r(ctx, e)
	if err != nil {
		return err
	}
	return c.Undo(ctx, e, say)
}

// Export returns the command, to be run manually.
func (r atRun) Export(ctx context.Context, e steps.Env) ([]action.Exported, error) {
	c, err := r(ctx, e)
	if err != nil {
		return nil, err
	}
	return c.Export(ctx, e)
}

func restartPlugin(_ context.Context, e steps.Env) (action.Command, error) {
	return action.Command{
		Title: "makes the plugin read its configuration; jobs keep running", Run: []string{"systemctl", "restart", unitOf(e)},
		Done: func(ctx context.Context, e steps.Env) (bool, error) {
			ok, _, err := started(ctx, e)
			return ok, err
		},
	}, nil
}
