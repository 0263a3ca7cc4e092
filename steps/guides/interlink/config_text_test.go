package interlink

import (
	"strings"
	"testing"
)

const certA = "-----BEGIN CERTIFICATE-----\nAAAA\nBBBB\n-----END CERTIFICATE-----\n"

// broken is InterLinkConfig.yaml with a CA as rendered by charts since 0.5.3.
const broken = `InterlinkURL: "http://10.1.2.3"   # the edge node
KubernetesApiAddr: "192.0.2.7"
KubernetesApiPort: "60443"
KubernetesApiCaCrt: |
        -----BEGIN CERTIFICATE-----
  AAAA
  BBBB
  -----END CERTIFICATE-----
ExportPodData: false
VerboseLogging: true
# what the node offers
Resources:
  CPU: "10"
`

func TestEditConfig(t *testing.T) {
	all := []vkSetting{
		{keyAddress, "api.example.org"}, {keyPort, "60443"}, {keyCA, certA}, {keyDropped, false}, {keyVerbose, false},
	}
	for name, c := range map[string]struct{ text, want string }{
		"the chart's CA": {broken, `InterlinkURL: "http://10.1.2.3"   # the edge node
KubernetesApiAddr: "api.example.org"
KubernetesApiPort: "60443"
KubernetesApiCaCrt: |
  -----BEGIN CERTIFICATE-----
  AAAA
  BBBB
  -----END CERTIFICATE-----
ExportPodData: false
VerboseLogging: false
# what the node offers
Resources:
  CPU: "10"
`},
		"nothing is there": {"# ours\nInterlinkURL: x\n\n", `# ours
InterlinkURL: x
KubernetesApiAddr: "api.example.org"
KubernetesApiPort: "60443"
KubernetesApiCaCrt: |
  -----BEGIN CERTIFICATE-----
  AAAA
  BBBB
  -----END CERTIFICATE-----

`},
		"a number, a comment, a volume switched off": {
			"KubernetesApiPort: 60443 # as opened\nDisableProjectedVolumes: true # for now\nKubernetesApiCaCrt: \"old\"\n\n# " +
				"next\nA: b\nKubernetesApiAddr: 'x'",
			`KubernetesApiPort: 60443 # as opened
DisableProjectedVolumes: false # for now
KubernetesApiCaCrt: |
  -----BEGIN CERTIFICATE-----
  AAAA
  BBBB
  -----END CERTIFICATE-----

# next
A: b
KubernetesApiAddr: "api.example.org"`,
		},
	} {
		got, err := editConfig(c.text, all)
		if err != nil || got != c.want {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
		if again, err := editConfig(got, all); err != nil || again != got {
			t.Errorf("%s: an edited text is edited again: %v\n%s", name, err, again)
		}
	}
}

func TestEditConfigTakesAway(t *testing.T) {
	got, err := editConfig("A: b\nKubernetesApiCaCrt: |\n  x\n\n  y\nC: d\n", []vkSetting{{keyCA, ""}})
	if err != nil || got != "A: b\nC: d\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestRevertConfig(t *testing.T) {
	settings := []vkSetting{
		{keyAddress, "api.example.org"}, {keyPort, "60443"}, {keyCA, certA}, {keyDropped, false}, {keyVerbose, false},
	}
	written, err := editConfig(broken, settings)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(old, new string) string {
		out := strings.Replace(written, old, new, 1)
		if out == written {
			t.Fatalf("%q is not in\n%s", old, written)
		}
		return out
	}
	restored := strings.NewReplacer("api.example.org", "192.0.2.7", "VerboseLogging: false", "VerboseLogging: true")
	for name, c := range map[string]struct{ text, want string }{
		"a key of carrick's": {
			replace("api.example.org", "10.9.9.9"), strings.Replace(restored.Replace(written), "192.0.2.7", "10.9.9.9", 1),
		},
		"a key of carrick's is gone": {
			replace("KubernetesApiAddr: \"api.example.org\"\n", ""),
			strings.Replace(restored.Replace(written), "KubernetesApiAddr: \"192.0.2.7\"\n", "", 1),
		},
		"another key": {
			replace("CPU: \"10\"", "CPU: \"20\""),
			strings.Replace(restored.Replace(written), "CPU: \"10\"", "CPU: \"20\"", 1),
		},
		"a new file of the chart's": {
			"KubernetesApiAddr: 10.9.9.9 # new\nKubernetesApiCaCrt: |\n      -----BEGIN CERTIFICATE-----\n  BB\n" +
				"  -----END CERTIFICATE-----\n",
			"KubernetesApiAddr: 10.9.9.9 # new\nKubernetesApiCaCrt: |\n      -----BEGIN CERTIFICATE-----\n  BB\n" +
				"  -----END CERTIFICATE-----\n",
		},
	} {
		got, err := editsConfig().Without(c.text, broken, asMap(settings), nil)
		if err != nil || got != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, c.want)
		}
	}
	if got, err := editsConfig().Without(
		"A: b\nVerboseLogging: false\n", "A: b\nVerboseLogging:\n", map[string]any{keyVerbose: false}, nil,
	); err != nil || got != "A: b\n" {
		t.Errorf("a key without a value: %v %q", err, got)
	}
	if got, err := editsConfig().Without(
		"A: b\n", "A: b\n"+keyCA+": |\n  x\n", map[string]any{keyCA: ""}, nil,
	); err != nil ||
		got != "A: b\n"+keyCA+": |\n  x\n" {
		t.Errorf("a CA that carrick has removed: %v %q", err, got)
	}
}

func TestEditConfigRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"broken elsewhere":     "A: [b\nKubernetesApiCaCrt: |\n  x\n",
		"all in one line":      `{A: b, KubernetesApiAddr: c}`,
		"a list":               "- A\n",
		"the address is a map": "KubernetesApiAddr: {a: b}\n",
	} {
		if got, err := editConfig(text, []vkSetting{{keyAddress, "api.example.org"}}); err == nil {
			t.Errorf("%s: it is %q", name, got)
		}
	}
}

func TestChartBug(t *testing.T) {
	if !chartBug(broken) || chartBug("A: [b\n") || chartBug("A: b\n") {
		t.Error("the chart's bug is told from others by what puts it right")
	}
	values, err := parseConfig(straightenCA(strings.ReplaceAll(broken, "  AAAA", "AAAA")))
	if err != nil || configText(values, keyCA) != certA {
		t.Errorf("a CA whose lines are not indented at all: %v, %v", values, err)
	}
	if _, err := parseConfig("VerboseLogging: \"no\"\n"); err == nil {
		t.Error("a text for a switch is taken")
	}
}
