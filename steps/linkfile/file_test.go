package linkfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carrick/steps"
	"carrick/steps/linkfile"
)

func toy() *steps.Guide {
	renamed := map[string]string{"tunnel.port": "network.port"}
	return &steps.Guide{Name: "toy", Renamed: renamed, Steps: []steps.Step{{Ask: []steps.Question{
		{Key: "network.port", Title: "Port", Help: "h", Kind: steps.Port},
		{Key: "pools", Title: "Pools", Help: "h", Kind: steps.Name, Many: true, Opt: true},
		{Key: "password", Title: "Password", Help: "h", Kind: steps.Text, Secret: true},
	}}}}
}

const goodLink = `apiVersion: carrick/v1alpha1
kind: Link
metadata: {name: milan-rome}
guide: toy
local:  {context: kind-milan}
remote: {context: kind-rome, kubeconfig: rome.yaml}
answers:
  network.port: 30742 # the firewall is open here
`

func TestLinkFileFaultsHaveTheirPlace(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"not YAML":    {"a: [", "is not valid YAML"},
		"empty":       {"", "l.yaml:1:1: is not a link file"},
		"a list":      {"- a", "l.yaml:1:1: is not a link file"},
		"unknown key": {goodLink + "colour: red\n", "l.yaml:9:1: colour: is not a key of a link file"},
		"unknown key inside": {
			strings.Replace(goodLink, "{context: kind-milan}", "{contxt: kind-milan}", 1),
			"l.yaml:5:10: local.contxt: is not a key",
		},
		"duplicate key": {goodLink + "guide: toy\n", "already defined"},
		"wrong type": {
			strings.Replace(goodLink, "guide: toy", "guide: [toy]", 1), "l.yaml:4:8: guide: got array, want string",
		},
		"another kind": {strings.Replace(goodLink, "kind: Link", "kind: List", 1), "l.yaml:2:7: kind:"},
		"unknown guide": {
			strings.Replace(goodLink, "guide: toy", "guide: tow", 1),
			`l.yaml:4:8: guide: guide "tow" does not exist (did you mean toy?); choose one of: toy`,
		},
		"unknown answer": {strings.Replace(goodLink, "network.port", "port", 1), "did you mean network.port?"},
		"wrong answer": {
			strings.Replace(goodLink, "30742", "99999", 1), `l.yaml:8:17: answers.network.port: "99999" is not a port`,
		},
		"answer of its kind": {strings.Replace(goodLink, "30742", "[1, 2]", 1), "expected one port, not a list"},
		"scalar for a list":  {goodLink + "  pools: one\n", "write [one]"},
		"secret in the file": {goodLink + "  password: x\n", "is secret and must not be in a file"},
		"bad name":           {strings.Replace(goodLink, "milan-rome", "Milan_Rome", 1), "is not a name for a link"},
		"alias": {
			strings.Replace(goodLink, "{context: kind-milan}", "&a {context: x}", 1), "anchors and aliases are not allowed",
		},
		"here without a root": {
			strings.Replace(goodLink, "{context: kind-milan}", "{host: {here: true}}", 1),
			"l.yaml:5:16: local.host: missing propert",
		},
		"signer, no facts": {
			strings.Replace(
				goodLink, "{context: kind-milan}", "{context: x, signer: \"SHA256:"+strings.Repeat("a", 43)+"\"}", 1,
			),
			"l.yaml:5:9: local: properties 'facts' required",
		},
		"no fingerprint": {
			strings.Replace(goodLink, "{context: kind-milan}", "{facts: x, signer: alice}", 1),
			"local.signer: 'alice' does not match pattern",
		},
		"taken, no facts": {
			strings.Replace(goodLink, "{context: kind-milan}", "{context: x, taken: 2026-03-01T12:00:00Z}", 1),
			"l.yaml:5:9: local: properties 'facts' required",
		},
		"taken is no time": {
			strings.Replace(goodLink, "{context: kind-milan}", "{facts: x, taken: tomorrow}", 1),
			"local.taken: 'tomorrow' does not match pattern",
		},
		"taken is no day": {
			strings.Replace(goodLink, "{context: kind-milan}", `{facts: x, taken: "2026-13-01T12:00:00Z"}`, 1), "l.yaml",
		},
		"here is no yes": {
			strings.Replace(goodLink, "{context: kind-milan}", `{host: {root: /h, here: "yes"}}`, 1),
			"local.host.here: got string, want boolean",
		},
		"old and new name":    {goodLink + "  tunnel.port: 30743\n", `mapping key "network.port" already defined at line 8`},
		"two faults together": {strings.Replace(goodLink, "30742", "0", 1) + "  what: 1\n", "l.yaml:9:9: answers.what"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := linkfile.Parse("l.yaml", []byte(c.text), []*steps.Guide{toy()})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want it to say %q", err, c.want)
			}
			if e := (*linkfile.FileError)(nil); !errors.As(err, &e) || e.Path != "l.yaml" {
				t.Fatalf("%v is no FileError of that path", err)
			}
		})
	}
}

func TestALinkFileFromWindows(t *testing.T) {
	l, err := linkfile.Parse("l.yaml", []byte(strings.ReplaceAll(goodLink, "\n", "\r\n")), []*steps.Guide{toy()})
	if err != nil {
		t.Fatal(err)
	}
	text, err := l.Marshal()
	if err != nil || strings.Contains(string(text), "\r") || l.Name() != "milan-rome" {
		t.Errorf("%v\n%q", err, text)
	}
}

func TestAnOldNameOfAnAnswerIsRead(t *testing.T) {
	text := strings.Replace(goodLink, "network.port", "tunnel.port", 1)
	l, err := linkfile.Parse("l.yaml", []byte(text), []*steps.Guide{toy()})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"answers.tunnel.port is now network.port; the old name still works"}
	if l.Answers["network.port"] != 30742 || !slices.Equal(l.Renamed, want) {
		t.Errorf("read %v, said %q", l.Answers, l.Renamed)
	}
	saved, err := l.Marshal()
	if err != nil || !strings.Contains(string(saved), "\n  network.port: 30742 # the firewall is open here\n") {
		t.Errorf("saved: %v\n%s", err, saved)
	}
}

func TestLinkFileRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.yaml")
	if err := os.WriteFile(path, []byte(goodLink), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := linkfile.Load(path, []*steps.Guide{toy()})
	if err != nil {
		t.Fatal(err)
	}
	if l.Answers["network.port"] != 30742 || l.Remote.Context != "kind-rome" ||
		l.File(l.Remote.Kubeconfig) != filepath.Join(filepath.Dir(path), "rome.yaml") {
		t.Fatalf("read %+v", l)
	}
	l.Answers["pools"] = []string{"a", "b"}
	if err := l.Save(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "# the firewall is open here") {
		t.Errorf("saving lost the comment:\n%s", b)
	}
	fresh := linkfile.New("toy", "x")
	fresh.Path = filepath.Join(t.TempDir(), "x.yaml")
	if err := fresh.Save(); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(fresh.Path); info.Mode().Perm() != 0o600 {
		t.Errorf("a new file has mode %v, want 0600", info.Mode())
	}
	again, err := linkfile.Load(path, []*steps.Guide{toy()})
	if err != nil || len(again.Answers["pools"].([]string)) != 2 {
		t.Fatalf("read back %+v, %v", again, err)
	}
}

func TestLinkFileIsNotWrittenThroughASymlink(t *testing.T) {
	dir := t.TempDir()
	target, path := filepath.Join(dir, "target"), filepath.Join(dir, "l.yaml")
	if err := os.WriteFile(target, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	l := linkfile.New("toy", "x")
	l.Path = path
	if err := l.Save(); err == nil {
		t.Error("wrote through a symlink")
	}
	if b, _ := os.ReadFile(target); string(b) != "mine" {
		t.Errorf("the target now says %q", b)
	}
}
