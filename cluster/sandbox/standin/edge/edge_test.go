package edge

import (
	"os"
	"testing"
)

func TestExports(t *testing.T) {
	m, err := Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, c := range []struct {
		situation string
		do        func() error
		want      bool
		fails     bool
	}{
		{"as the cookbook has it", func() error { return nil }, false, false},
		{"switched on", func() error { return m.Set("ExportPodData", "true") }, true, false},
		{"switched off", func() error { return m.Set("ExportPodData", "false") }, false, false},
		{
			"in another case, which nobody reads", func() error { return m.Write(Config, "exportpoddata: true\n", 0o644) },
			false, false,
		},
		{"switched on by a word of YAML 1.1", func() error { return m.Set("ExportPodData", "yes") }, false, false},
		{"switched on in quotes", func() error { return m.Set("ExportPodData", `"true"`) }, false, false},
		{"switched on with a tag", func() error { return m.Set("ExportPodData", "!!bool true") }, true, false},
		{"switched on in quotes with a tag", func() error { return m.Set("ExportPodData", `!!bool "true"`) }, true, false},
		{"a text by its tag", func() error { return m.Set("ExportPodData", "!!str true") }, false, false},
		{
			"switched on by an alias", func() error { return m.Write(Config, "A: &a true\nExportPodData: *a\n", 0o644) }, true,
			false,
		},
		{
			"switched on by a merged key",
			func() error { return m.Write(Config, "A: &a {ExportPodData: true}\n<<: *a\n", 0o644) }, true, false,
		},
		{
			"another key of the wrong type",
			func() error { return m.Write(Config, "VerboseLogging: yes\nExportPodData: true\n", 0o644) }, true, false,
		},
		{
			"set twice", func() error { return m.Write(Config, "ExportPodData: true\nExportPodData: true\n", 0o644) }, false,
			false,
		},
		{"a block of text", func() error { return m.Write(Config, "ExportPodData: |\n  true\n", 0o644) }, false, false},
		{"a text that is no YAML", func() error { return m.Write(Config, "ExportPodData: [\n", 0o644) }, false, false},
		{"a unit that names another file", func() error {
			if err := m.Write("/srv/slurm.yaml", "ExportPodData: true\n", 0o644); err != nil {
				return err
			}
			return m.Write(Unit, "[Service]\nEnvironment=\"SLURMCONFIGPATH=/srv/slurm.yaml\"\n", 0o644)
		}, true, false},
		{"a unit that names none, and upstream's default", func() error {
			if err := m.Write(Builtin, "ExportPodData: true\n", 0o644); err != nil {
				return err
			}
			return m.Write(Unit, "[Service]\nExecStart=/root/.interlink/bin/plugin\n", 0o644)
		}, true, false},
		{
			"a unit that names none that is there",
			func() error { return m.Write(Unit, "Environment=SLURMCONFIGPATH=/srv/none.yaml\n", 0o644) }, false, true,
		},
	} {
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		got, err := m.Exports()
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %v, %v", c.situation, got, err)
		}
	}
	m.Close()
	if _, err := os.Stat(m.Root); !os.IsNotExist(err) {
		t.Errorf("the folder stays: %v", err)
	}
}
