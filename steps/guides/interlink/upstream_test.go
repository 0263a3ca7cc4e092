package interlink_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/upstream"
	"carrick/steps"
	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

// loadConfig is a program that prints how the virtual kubelet reads a configuration file.
const loadConfig = `package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	vk "github.com/interlink-hq/interlink/pkg/virtualkubelet"
)

func main() {
	config, err := vk.LoadConfig(context.Background(), os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(config)
}
`

// loadPlugin is a program that prints how the plugin reads a configuration file.
const loadPlugin = `package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/intertwin-eu/interlink-slurm-plugin/pkg/slurm"
)

func main() {
	os.Setenv("SLURMCONFIGPATH", os.Args[1])
	os.Args = os.Args[:1]
	config, err := slurm.NewSlurmConfig()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(config)
}
`

// read returns the configuration that a probe program reads from text.
func read(t *testing.T, probe, text string) map[string]any {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), probe, path).Output()
	if err != nil {
		t.Fatalf("%v; of:\n%s", err, text)
	}
	config := map[string]any{}
	if err := json.Unmarshal(out, &config); err != nil {
		t.Fatal(err)
	}
	return config
}

// The virtual kubelet reads the settings that carrick has edited, and all other settings as before.
func TestUpstreamVirtualKubelet(t *testing.T) {
	src := upstream.Find(t, "interLink")
	probe := src.Probe(t, loadConfig, nil)
	box := seeded(t, "")
	text := func() string {
		return box.Run(t, clustertest.Local, "", "get", "configmaps", "-A", "-o",
			`go-template={{range .items}}{{with index .data "InterLinkConfig.yaml"}}{{.}}{{end}}{{end}}`)
	}
	before := read(t, probe, text())
	answers := stepstest.Given(t, box, interlink.Guide(), ways["as-it-comes"].more)
	s := stepstest.Open(t, box, interlink.Guide(), assets, "upstream", answers)
	stepstest.Apply(t, s, steps.ApplyOptions{TakeOver: true})
	src.Try(t, "LoadConfig reads what carrick has edited, and all else as before", func(t *testing.T) {
		after := read(t, probe, text())
		edited := map[string]bool{
			"KubernetesAPIAddr": true, "KubernetesAPIPort": true, "KubernetesAPICaCrt": true,
			"DisableProjectedVolumes": true, "VerboseLogging": true,
		}
		for key := range after {
			if !edited[key] && !cmp.Equal(before[key], after[key]) {
				t.Errorf("%s was %v, and is %v", key, before[key], after[key])
			}
		}
		for _, key := range []string{"KubernetesAPIAddr", "KubernetesAPIPort", "KubernetesAPICaCrt"} {
			if after[key] == "" {
				t.Errorf("%s is empty", key)
			}
		}
		if after["DisableProjectedVolumes"] != false {
			t.Error("projected volumes are off")
		}
	})
	src.Try(t, "LoadConfig reads after undo what it read before", func(t *testing.T) {
		stepstest.Undo(t, s)
		if diff := cmp.Diff(before, read(t, probe, text())); diff != "" {
			t.Error(diff)
		}
	})
}

var exports = regexp.MustCompile(`(?m)^ExportPodData:.*\n`)

// carrick reads ExportPodData as the plugin does, which ignores errors of its parser.
func TestUpstreamPlugin(t *testing.T) {
	src := upstream.Find(t, "interlink-slurm-plugin")
	probe := src.Probe(t, loadPlugin, nil)
	box := seeded(t, "")
	answers := stepstest.Given(t, box, interlink.Guide(), ways["as-it-comes"].more)
	at, _ := answers["plugin.config"].(string)
	if at == "" {
		at = "/root/.interlink/config/SlurmConfig.yaml"
	}
	path := filepath.Join(box.Hosts[string(steps.Remote)], at)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := stepstest.Open(t, box, interlink.Guide(), assets, "upstream", answers)
	for _, word := range []string{
		"true", "True", "TRUE", "yes", "on", "y", `"true"`, "'true'", "false", "no", "1", "~", "!!bool true", "!!str true",
	} {
		src.Try(t, "the row plugin-exports reads ExportPodData: "+word+" as the plugin does", func(t *testing.T) {
			text := exports.ReplaceAllString(string(whole), "") + "\nExportPodData: " + word + "\n"
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			reads := read(t, probe, text)["ExportPodData"] == true
			b, _ := s.Look(t.Context(), s.Guide().Cells())
			_, step := s.Guide().Check("plugin-exports")
			r := b.Verdict(steps.Cell{Step: step.Name, Check: "plugin-exports", Side: steps.Remote})
			if (r.Status == steps.Pass) != reads {
				t.Errorf("the plugin reads %v, and the row says %s: %s", reads, r.Status, r.Found)
			}
		})
	}
}
