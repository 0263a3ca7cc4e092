package interlink

import (
	"strings"
	"testing"
)

// exporting sets the key in place and keeps the rest of the text verbatim.
func TestPluginExporting(t *testing.T) {
	for name, x := range map[string]struct{ have, want string }{
		"absent":      {"SbatchPath: \"/usr/bin/sbatch\"\n", "SbatchPath: \"/usr/bin/sbatch\"\nExportPodData: true\n"},
		"no line end": {"SbatchPath: a", "SbatchPath: a\nExportPodData: true\n"},
		"false": {
			"# ours\nExportPodData: false # as shipped\nNamespace: \"vk\"\n",
			"# ours\nExportPodData: true # as shipped\nNamespace: \"vk\"\n",
		},
		"quoted":         {"\"ExportPodData\": \"false\"\nA: b\n", "\"ExportPodData\": true\nA: b\n"},
		"empty":          {"ExportPodData:\nA: b\n", "ExportPodData: true\nA: b\n"},
		"true":           {"ExportPodData:   true\n", "ExportPodData:   true\n"},
		"in capitals":    {"ExportPodData: TRUE\n", "ExportPodData: TRUE\n"},
		"yes":            {"ExportPodData: yes # ours\n", "ExportPodData: true # ours\n"},
		"on":             {"ExportPodData: on\n", "ExportPodData: true\n"},
		"y":              {"ExportPodData: y\n", "ExportPodData: true\n"},
		"1":              {"ExportPodData: 1\n", "ExportPodData: true\n"},
		"true in quotes": {"ExportPodData: \"true\"\n", "ExportPodData: true\n"},
		"nothing at all": {"", "ExportPodData: true\n"},
	} {
		got, err := parsePlugin(x.have).exporting()
		if err != nil || got != x.want {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	for _, bad := range []string{"- a\n", "a: [", "ExportPodData: [a]\n", "{ExportPodData: false, A: b}\n"} {
		if got, err := parsePlugin(bad).exporting(); err == nil && !strings.Contains(got, "A: b") {
			t.Errorf("%q is edited:\n%s", bad, got)
		}
	}
}

// The plugin's parser, goccy/go-yaml v1.18.0, decodes nothing if a mapping contains a key twice.
func TestPluginConfigHasNoKeyTwice(t *testing.T) {
	for text, bad := range map[string]string{
		"ExportPodData: true\nNamespace: vk\nExportPodData: false\n": "line 3: ExportPodData is already set on line 1",
		"ExportPodData: true\n\"ExportPodData\": true\n":             "line 2: ExportPodData is already set on line 1",
		"ExportPodData: true\nFlavors:\n  a: {b: 1}\n  a: {b: 2}\n":  "line 4: a is already set on line 3",
		"ExportPodData: true\nFlavors: [{a: 1, a: 2}]\n":             "line 2: a is already set on line 2",
		"ExportPodData: true\nFlavors:\n  a: {b: 1}\n  c: {b: 1}\n":  "",
		"ExportPodData: true\nA: &a {b: 1}\nC:\n  <<: *a\n  b: 2\n":  "",
		"---\nExportPodData: true\n---\nExportPodData: false\n":      "",
	} {
		c := parsePlugin(text)
		if (bad == "") != (c.bad == nil) || bad != "" && !strings.HasPrefix(c.bad.Error(), bad) {
			t.Errorf("%q: %v, want %q", text, c.bad, bad)
		}
	}
}

func TestUnitStartsPlugin(t *testing.T) {
	for text, want := range map[string]bool{
		"ExecStart=/root/.interlink/bin/plugin":                                   true,
		"ExecStart=/usr/bin/env SLURMCONFIGPATH=/a /opt/plugin":                   true,
		"ExecStart=/usr/bin/docker run ghcr.io/interlink-hq/interlink-slurm:1.0":  true,
		"#ExecStart=/root/.interlink/bin/plugin":                                  false,
		"Environment=INTERLINKCONFIGPATH=/a\nExecStart=/opt/interlink/bin/plugin": false,
		"ExecStart=/usr/sbin/slurmd":                                              false,
		"ExecStart=/root/.interlink/bin/interlink":                                false,
	} {
		if got := (unit{"x", text}).startsPlugin(); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}
