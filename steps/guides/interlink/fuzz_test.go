package interlink

import (
	"maps"
	"reflect"
	"strings"
	"testing"
)

// editConfig sets the required keys in any InterLinkConfig.yaml and keeps all other keys, or it returns an error.
func FuzzEditConfig(f *testing.F) {
	f.Add(broken, "192.0.2.7", certA)
	f.Add("KubernetesApiPort: 60443 # as opened\nDisableProjectedVolumes: true\n\n# next\nA: b\n", "api.example.org", "")
	f.Add("{A: b, KubernetesApiAddr: c}", "::1", "x")
	f.Add("KubernetesApiCaCrt: >-\n  a\n\n  b\n---\nA: b\n", "a", certA)
	f.Fuzz(func(t *testing.T, text, address, ca string) {
		settings := []vkSetting{
			{keyAddress, address}, {keyPort, "60443"}, {keyCA, plainPEM(ca)}, {keyDropped, false}, {keyVerbose, false},
		}
		got, err := editConfig(text, settings)
		if err != nil {
			return
		}
		now, err := parseConfig(got)
		if err != nil {
			t.Fatalf("what was edited can't be read: %v\n%q", err, got)
		}
		was, err := parseConfig(text)
		if err != nil {
			was, _ = parseConfig(straightenCA(text))
		}
		for _, s := range settings {
			if !configSays(now, s) {
				t.Errorf("%s is %v, not %v\n%q", s.key, now[s.key], s.value, got)
			}
		}
		others := func(m map[string]any) map[string]any {
			out := maps.Clone(m)
			for _, s := range settings {
				delete(out, s.key)
			}
			return out
		}
		if !reflect.DeepEqual(others(was), others(now)) {
			t.Errorf("more than that was changed:\n%q\n%q", text, got)
		}
		if again, err := editConfig(got, settings); err != nil || again != got {
			t.Errorf("an edited text is edited again: %v\n%q\n%q", err, got, again)
		}
	})
}

// exporting sets ExportPodData in any SlurmConfig.yaml and keeps all other keys, or it returns an error.
func FuzzExporting(f *testing.F) {
	f.Add("Socket: x\nExportPodData: false # for now\nNamespace: vk\n")
	f.Add("ExportPodData:\n  false\n")
	f.Add("{ExportPodData: false, Namespace: vk}")
	f.Add("ExportPodData: &a false\nVerboseLogging: *a\n")
	f.Add("ExportPodData: |\n  no\nNamespace: vk\n")
	f.Add("Socket: x\n...\n")
	f.Fuzz(func(t *testing.T, text string) {
		was := parsePlugin(text)
		got, err := was.exporting()
		if err != nil {
			return
		}
		now := parsePlugin(got)
		if !now.flag("ExportPodData") {
			t.Fatalf("it does not say so:\n%q", got)
		}
		if !strings.HasSuffix(text, "\n") { // exporting ends the last line, which adds a line break to a block scalar
			was = parsePlugin(text + "\n")
		}
		if before, after := others(was), others(now); !reflect.DeepEqual(before, after) {
			t.Errorf("more than that was changed:\n%q %v\n%q %v", text, before, got, after)
		}
		if again, err := now.exporting(); err != nil || again != got {
			t.Errorf("an edited text is edited again: %v\n%q", err, again)
		}
	})
}

// others returns the values of all keys except ExportPodData, as far as they can be decoded.
func others(c pluginConfig) map[string]any {
	out := map[string]any{}
	if c.top == nil {
		return out
	}
	for i := 0; i+1 < len(c.top.Content); i += 2 {
		var v any
		if key := c.top.Content[i].Value; key != "ExportPodData" && c.top.Content[i+1].Decode(&v) == nil {
			out[key] = v
		}
	}
	return out
}
