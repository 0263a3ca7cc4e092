package kubeconfig

import (
	"encoding/base64"
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ParseReferring is like Parse for a kubeconfig that can refer to files. Relative paths are relative to the directory
// folder. read returns the content of a file. If a file does not exist or is a directory, read returns unusable, which
// becomes a problem of the kubeconfig. If read returns err, ParseReferring returns that err instead of an Error.
func ParseReferring(
	data []byte, folder string, read func(path string) (data []byte, unusable, err error),
) (Config, error) {
	p := parser{}
	var failed error
	p.file = func(at *yaml.Node, key string) ([]byte, bool) {
		if at.Kind != yaml.ScalarNode || at.ShortTag() != "!!str" || at.Value == "" {
			p.say(at, RuleWrongType, "%s must be the path of a file", key)
			return nil, false
		}
		name := at.Value
		if !path.IsAbs(name) {
			name = path.Join(folder, name)
		}
		data, unusable, err := read(name)
		switch {
		case unusable != nil:
			p.say(at, RuleFileReference, "%s is %s: %v", key, name, unusable)
		case err != nil && failed == nil:
			failed = fmt.Errorf("%s of the kubeconfig: %w", key, err)
		}
		return data, unusable == nil && err == nil
	}
	k := p.parse(data)
	switch {
	case failed != nil:
		return Config{}, failed
	case len(p.problems) > 0:
		return Config{}, Error{Problems: p.sorted()}
	}
	return k, nil
}

// inline replaces references to files with the files' content, if p.file permits references. As in kubectl, data in the
// kubeconfig itself takes precedence.
func (p *parser) inline(f settings, keys ...string) {
	for _, key := range keys {
		if f[key] == nil || p.file == nil {
			continue
		}
		if f[key+"-data"] == nil {
			data, ok := p.file(f[key], key)
			if !ok {
				continue // already reported
			}
			f[key+"-data"] = textAt(f[key], base64.StdEncoding.EncodeToString(data))
		}
		delete(f, key)
	}
}

// inlineToken replaces tokenFile with the content of the file, like inline. As in kubectl, the file takes precedence
// over a token in the kubeconfig.
func (p *parser) inlineToken(f settings) {
	at := f["tokenFile"]
	if at == nil || p.file == nil {
		return
	}
	if data, ok := p.file(at, "tokenFile"); ok {
		f["token"] = textAt(at, strings.TrimSpace(string(data)))
	}
}

func textAt(at *yaml.Node, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: at.Line}
}
