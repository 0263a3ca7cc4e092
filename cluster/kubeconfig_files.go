package cluster

import (
	"encoding/base64"
	"strings"

	"go.yaml.in/yaml/v3"
)

// inline puts what files hold in the place of the references to them, where they may be followed. As with kubectl, what
// stands in the kubeconfig itself comes first.
func (p *kubeconfigParser) inline(f settings, keys ...string) {
	for _, key := range keys {
		if f[key] == nil || p.file == nil {
			continue
		}
		if f[key+"-data"] == nil {
			data, ok := p.file(f[key], key)
			if !ok {
				continue // said already
			}
			f[key+"-data"] = textAt(f[key], base64.StdEncoding.EncodeToString(data))
		}
		delete(f, key)
	}
}

// inlineToken does it for a token. As with kubectl, the file comes before a token in the kubeconfig.
func (p *kubeconfigParser) inlineToken(f settings) {
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
