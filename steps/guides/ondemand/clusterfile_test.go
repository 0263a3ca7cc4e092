package ondemand

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"carrick/steps"
)

// good contains a valid YAML value for each value type, and bad a value of another type.
var (
	good = map[valueForm]string{words: `"a"`, flag: "true", file: `"/a"`, listForm: "[]", mapping: "{}", anyForm: "1"}
	bad  = map[valueForm]string{words: "[]", flag: `"true"`, file: "{}", listForm: "{}", mapping: `"a"`}
)

// nest returns a cluster file with a value at a path under v2.
func nest(path, value string) string {
	out, indent := "v2:\n", "  "
	parts := strings.Split(path, ".")
	for i, p := range parts {
		name, item := strings.CutSuffix(p, "[]")
		end := ""
		if i == len(parts)-1 {
			end = " " + value
		}
		switch {
		case item:
			out += indent + name + ":\n" + indent + "-" + strings.TrimPrefix(end, "")
			if end == "" {
				indent += "  "
				out += " # an item"
			}
		default:
			out += indent + name + ":" + end
		}
		out += "\n"
		indent += "  "
	}
	return out
}

// For each key of clusterKeys, the linter accepts a value of the expected type. It reports a value of another type, and
// a key name that is one letter shorter.
func TestEveryKeyOfTheClusterFile(t *testing.T) {
	for _, k := range clusterKeys {
		t.Run(k.path, func(t *testing.T) {
			if k.read == "" {
				t.Error("where upstream reads it is not said")
			}
			about := func(value string) []fileFault {
				d := parseClusterFile("f.yml", []byte(nest(k.path, value)))
				return slices.DeleteFunc(d.lint(), func(f fileFault) bool {
					return strings.Contains(f.says, "the mount") || strings.Contains(f.says, "mount of type")
				})
			}
			if faults := about(good[k.form]); len(faults) > 0 {
				t.Errorf("%s: %v", nest(k.path, good[k.form]), faults)
			}
			if v := bad[k.form]; v != "" {
				if faults := about(v); len(faults) != 1 || faults[0].about != typing || faults[0].line == 0 {
					t.Errorf("%s: %v", nest(k.path, v), faults)
				}
			}
			above, name := cutLast(k.path)
			parent := keyAt(above)
			if name == "" || (parent != nil && parent.open) {
				return
			}
			typo := name[:len(name)-1] + "q"
			d := parseClusterFile("f.yml", []byte(nest(strings.TrimPrefix(above+"."+typo, "."), good[k.form])))
			faults := slices.DeleteFunc(d.lint(), func(f fileFault) bool {
				return strings.Contains(f.says, "the mount") || strings.Contains(f.says, "mount of type")
			})
			if len(faults) != 1 || faults[0].about != naming || !strings.Contains(faults[0].says, shownWord(typo)) {
				t.Errorf("%s: %v", typo, faults)
			}
		})
	}
}

func TestWhichKeyIsMeant(t *testing.T) {
	for _, tc := range []struct{ parent, name, want string }{
		{"job", "namespace-prefix", "did you mean namespace_prefix?"},
		{"job", "endpoint", "the key belongs under v2.job.server"},
		{"job", "ssh_allow", "the key belongs under v2.batch_connect"},
		{"job.server", "ca_file", ""},
		{"", "jobs", "did you mean job?"},
		{"job.auth", "adapter", "the key belongs under v2.job"},
		{"job", "zzzzzzzz", ""},
	} {
		if got := likelyMeant(tc.parent, tc.name); got != tc.want && (tc.want != "" || tc.name == "zzzzzzzz") {
			t.Errorf("%s under %s: %q, want %q", tc.name, tc.parent, got, tc.want)
		}
	}
}

// The linter reports YAML that Ruby's YAML.safe_load rejects, or reads as something other than it looks like.
func TestWhatRubyRefuses(t *testing.T) {
	for _, tc := range []struct{ text, at string }{
		{"", "is empty or contains only comments"},
		{"# only\n", "is empty or contains only comments"},
		{"- v2\n", "line 1, column 1: the file is not a mapping"},
		{"v2: {metadata: {title: *a}, custom: &a {}}\n", "is not valid YAML"},
		{"v2:\n  custom: &a {}\n  metadata: *a\n", "line 3, column 13: upstream's YAML.safe_load rejects the alias *a"},
		{"v2:\n  metadata: {title: 2024-01-01}\n", "line 2, column 21: \"2024-01-01\" is a date"},
		{"v2:\n  metadata:\n    title: :a\n", "line 3, column 12: \":a\" is a symbol"},
		{"v2:\n  metadata: {title: !ruby/object:Set a}\n", "line 2, column 21: upstream's YAML.safe_load rejects the tag"},
		{"v2:\n  metadata: {title: \"<%= x %>\"}\n", "line 2, column 21: \"<%= x %>\" looks like ERB"},
		{"v2:\n  custom: {}\n  custom: {}\n", "line 3, column 3: \"custom\" is already set in line 2"},
		{"v2: {}\n---\nv2: {}\n", "line 2, column 1: a second document"},
		{"V2: {}\n", "line 1, column 1: the top-level key is \"V2\""},
		{"job: {}\n", "line 1, column 1: job is at the top level"},
		{"v2:\n\tjob: {}\n", "line 2"},
		{"v2:\n  job:\n    bin:\n", "line 3, column 9: v2.job.bin has no value"},
	} {
		d := parseClusterFile("f.yml", []byte(tc.text))
		faults := d.lint()
		if len(faults) == 0 || !strings.HasPrefix(faults[0].String(), tc.at) {
			t.Errorf("%q: %v, want %s", tc.text, faults, tc.at)
		}
	}
}

// Editing a cluster file preserves its comments, the order of its keys, and the keys that carrick does not set.
func TestClusterFileIsEditedInPlace(t *testing.T) {
	have := `# ours
v2:
  metadata:
    title: 'Old' # what users see
  acls:
    - adapter: group # staff alone
      groups: [staff]
      type: whitelist
  job:
    adapter: kubernetes
    config_file: "~/.kube/config"
    # mounts of the site
    mounts: []
`
	d := parseClusterFile("f.yml", []byte(have))
	for _, s := range []struct {
		path  string
		value any
	}{
		{"metadata.title", "New"},
		{"job.adapter", "kubernetes"},
		{"job.config_file", dropRelative{}},
		{"job.context", drop{}},
		{"job.all_namespaces", false},
		{"job.server.endpoint", "https://k8s.example.org"},
		{"job.mounts", []any{map[string]any{"type": "nfs"}}},
		{"batch_connect.ssh_allow", false},
	} {
		if _, err := d.set(s.path, s.value); err != nil {
			t.Fatal(err)
		}
	}
	got, err := encoded(d.root)
	if err != nil {
		t.Fatal(err)
	}
	want := `---
# ours
v2:
  metadata:
    title: "New" # what users see
  acls:
    - adapter: group # staff alone
      groups: [staff]
      type: whitelist
  job:
    adapter: kubernetes
    # mounts of the site
    mounts:
      - type: nfs
    all_namespaces: false
    server:
      endpoint: "https://k8s.example.org"
  batch_connect:
    ssh_allow: false
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if _, err := withClusterKeys("f.yml", []byte("v1: {}\n"), steps.Env{}); err == nil ||
		!strings.Contains(err.Error(), "v1") {
		t.Errorf("a file that can't be read: %v", err)
	}
}

// A string of any content that carrick writes to the cluster file is read back unchanged.
func TestClusterFileTakesAnyText(t *testing.T) {
	for _, text := range []string{
		"plain", "yes", "1", "2024-01-01", ":a", "a: b # c", "\"'", "*x", "{}", "[", "<%= x %>", "ü…\t", "\\", "- a", "null",
		"~", "", " a ",
	} {
		d := parseClusterFile("f.yml", []byte("v2: {}"))
		if _, err := d.set("metadata.title", text); err != nil {
			t.Fatal(err)
		}
		b, err := encoded(d.root)
		if err != nil {
			t.Fatal(err)
		}
		var back struct {
			V2 struct{ Metadata struct{ Title any } }
		}
		if err := yaml.Unmarshal(b, &back); err != nil || back.V2.Metadata.Title != text {
			t.Errorf("%q is written as %s and read as %v (%v)", text, b, back, err)
		}
	}
}

func TestMountsOfTheAnswer(t *testing.T) {
	for _, tc := range []struct{ text, fault string }{
		{"", ""},
		{"[]", ""},
		{"- {type: nfs, name: home, host: nfs, path: /home, destination_path: /home}", ""},
		{"- {type: host, name: home, path: /home, destination_path: /home, host_type: Directory}", ""},
		{"type: nfs", "line 1: expected a list"},
		{"- {type: nfs, name: home, path: /home, destination_path: /home}", "line 1: the mount of type nfs has no host"},
		{"- {type: csi, name: home}", "line 1: upstream does not support the mount type"},
		{"- home", "line 1: v2.job.mounts[] must be a mapping"},
		{"- {type: host, name: home, path: /home, destination_path: home}", "line 1: destination_path of the mount"},
		{
			"- {type: host, name: home, path: /home, destination_path: /home, host_type: Folder}",
			"line 1: Kubernetes has no hostPath type",
		},
	} {
		err := checkMounts(tc.text)
		if (err == nil) != (tc.fault == "") || err != nil && !strings.HasPrefix(err.Error(), tc.fault) {
			t.Errorf("%s: %v, want %q", tc.text, err, tc.fault)
		}
	}
	if fmt.Sprint(
		parseClusterFile("f", []byte("v2: {job: {mounts: [{type: nfs}, {type: host}, {type: nfs}]}}")).mountTypes(),
	) != "[host nfs]" {
		t.Error("the types of mounts are not told")
	}
}
