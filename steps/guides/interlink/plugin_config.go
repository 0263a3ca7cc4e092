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

// pluginKeys are the keys that the plugin reads; it ignores all others (interlink-hq/interlink-slurm-plugin:
// pkg/slurm/types.go, f8451d93).
var pluginKeys = []string{
	"VKConfigPath", "SbatchPath", "ScancelPath", "SqueuePath", "SinfoPath", "SidecarPort", "Socket", "ExportPodData",
	"CommandPrefix", "ImagePrefix", "DataRootFolder", "Namespace", "Tsocks", "TsocksPath", "TsocksLoginNode", "BashPath",
	"VerboseLogging", "ErrorsOnlyLogging", "SingularityDefaultOptions", "SingularityPrefix", "SingularityPath",
	"EnableProbes", "EnrootDefaultOptions", "EnrootPrefix", "EnrootPath", "ContainerRuntime", "Flavors", "DefaultFlavor",
	"DefaultUID", "Taints", "ResourceScriptPath",
}

// pluginConfig is the current SlurmConfig.yaml.
type pluginConfig struct {
	text string
	top  *yaml.Node // the top-level mapping; nil: there is none
	bad  error      // why it is not YAML
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

// duplicate returns an error for a duplicate key of a mapping in n. The plugin's parser,
// goccy/go-yaml v1.18.0, then decodes nothing at all, and the plugin ignores its error.
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

// value returns the node of a key, or nil if it is not set.
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

// flag reports whether the plugin reads a key as true: its parser, goccy/go-yaml, accepts only
// these three words without quotes. For all other values, including YAML 1.1's yes and on, it
// returns an error, which the plugin ignores, and the key stays false
// (interlink-hq/interlink-slurm-plugin: pkg/slurm/func.go, f8451d93).
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

// unknown returns the keys that the plugin ignores, with the keys that were probably meant.
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

// exporting returns the file with ExportPodData: true and keeps the rest verbatim.
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
		return "", fmt.Errorf("carrick cannot set %s without changing more than that; set it manually", key)
	}
	return out, nil
}

// set returns the text with a key set to true, in its place or at the end.
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

// without returns the values of all other keys.
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
					"%s does not exist on the edge node: answer plugin.config with the path that the plugin reads", pluginPath(e),
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

// PlanUndo shows what is restored.
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

// Export only names the line, because the file belongs to the site and can contain confidential
// settings.
func (pluginConfigFile) Export(_ context.Context, e steps.Env) ([]action.Exported, error) {
	return []action.Exported{
		{Hand: "# on the edge node, in " + pluginPath(e) + ": ExportPodData: true, then restart the plugin"},
	}, nil
}

// atRun is a command that depends on answers.
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

// PlanUndo shows the command that reverts it.
func (r atRun) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := r(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	return c.PlanUndo(ctx, e)
}

// Undo reverts it.
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
