// Package edge fakes the machine that runs interLink's API server and Slurm plugin. It is a directory with the plugin's
// configuration, data directory, log and systemd unit. It contains no running programs. Package virtualkubelet fakes
// how the plugin handles a job.
//
// Sources, in interlink-hq/interlink-slurm-plugin f8451d93:
//
//   - pkg/slurm/func.go (NewSlurmConfig): the path of the configuration, /etc/interlink/SlurmConfig.yaml unless
//     SLURMCONFIGPATH is set; errors from its parser are ignored. go.mod: the parser is goccy/go-yaml v1.18.0, and the
//     test compares its results.
//   - pkg/slurm/types.go: the keys. pkg/slurm/prepare.go (mountData): nothing is mounted unless ExportPodData is true.
//
// And in interlink-hq/interLink f6321757:
//
//   - docs/docs/cookbook/1-edge.mdx: the keys of the configuration except SinfoPath, ImagePrefix, SingularityPath and
//     Namespace. ExportPodData is not among them.
//   - docs/docs/guides/08-systemd-deployment.mdx: the content of the unit and the path of its log.
//
// Known differences: the plugin reads its configuration once, when it starts, and exits without one. This fake reads
// the configuration for each job, so a restart is never necessary. EnvironmentFile and the flag -SlurmConfigpath of the
// unit are not read. SHARED_FS has no effect: no file is written to the data directory and no job script exists.
//
// The names of the files and of the unit are guesses, because no source was found. The cookbook uses
// $HOME/.interlink/manifests/plugin-config.yaml. The systemd guide uses interlink-slurm-plugin.service with
// /opt/interlink/config/plugin-config.yaml.
package edge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

// Paths of the plugin's files. The plugin reads Builtin unless its unit sets another path.
const (
	Config  = "/root/.interlink/config/SlurmConfig.yaml"
	Builtin = "/etc/interlink/SlurmConfig.yaml"
	Unit    = "/etc/systemd/system/slurm-plugin.service"
	Log     = "/root/.interlink/logs/plugin.log"
	Jobs    = "/root/.interlink/jobs"
)

// files contains the initial files by path.
var files = map[string]string{
	Config: `# As the cookbook for the edge has it.
Socket: "unix:///root/.plugin.sock"
SidecarPort: "0"

CommandPrefix: ""
DataRootFolder: "` + Jobs + `/"
BashPath: /bin/bash
VerboseLogging: false
ErrorsOnlyLogging: false
SbatchPath: "/usr/bin/sbatch"
ScancelPath: "/usr/bin/scancel"
SqueuePath: "/usr/bin/squeue"
SinfoPath: "/usr/bin/sinfo"
SingularityPath: "singularity"
SingularityPrefix: ""
ImagePrefix: "docker://"
Namespace: "vk"
`,
	Unit: `[Unit]
Description=Slurm plugin of interLink
After=network.target

[Service]
Type=simple
Environment=SLURMCONFIGPATH=` + Config + `
Environment=SHARED_FS=true
ExecStart=/root/.interlink/bin/plugin
StandardOutput=append:` + Log + `
StandardError=append:` + Log + `
Restart=on-failure

[Install]
WantedBy=multi-user.target
`,
	"/etc/os-release": "PRETTY_NAME=\"Rocky Linux 9.6 (Blue Onyx)\"\nID=\"rocky\"\nVERSION_ID=\"9.6\"\n",
	"/etc/hostname":   "edge\n",
}

// Machine is a directory that represents an edge node.
type Machine struct {
	Root string

	files *os.Root
	mu    sync.Mutex
}

// Start creates the directory and its initial files.
func Start(dir string) (*Machine, error) {
	m := &Machine{Root: filepath.Join(dir, "edge")}
	if err := os.MkdirAll(filepath.Join(m.Root, "var", "lib"), 0o755); err != nil { // exists on every Linux machine
		return nil, err
	}
	var err error
	if m.files, err = os.OpenRoot(m.Root); err != nil {
		return nil, err
	}
	for name, text := range files {
		err = errors.Join(err, m.Write(name, text, 0o644))
	}
	err = errors.Join(err, m.files.MkdirAll(Jobs[1:], 0o755), m.Write(Log, "", 0o600))
	m.Say("info", "Slurm plugin started (stand-in: nothing runs on this machine)")
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Close removes the directory.
func (m *Machine) Close() {
	m.files.Close()
	_ = os.RemoveAll(m.Root)
}

// Write writes a file on the machine.
func (m *Machine) Write(name, text string, mode fs.FileMode) error {
	rel := strings.TrimPrefix(name, "/")
	if err := m.files.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
		return err
	}
	if err := m.files.WriteFile(rel, []byte(text), mode); err != nil {
		return err
	}
	return m.files.Chmod(rel, mode)
}

// Read returns the content of a file on the machine.
func (m *Machine) Read(name string) (string, error) {
	data, err := m.files.ReadFile(strings.TrimPrefix(name, "/"))
	return string(data), err
}

// Set sets a top-level key in the plugin's configuration. An empty value removes the key.
func (m *Machine) Set(key, value string) error {
	text, err := m.Read(Config)
	if err != nil {
		return err
	}
	var kept []string
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if !strings.HasPrefix(line, key+":") {
			kept = append(kept, line)
		}
	}
	if value != "" {
		kept = append(kept, key+": "+value)
	}
	return m.Write(Config, strings.Join(kept, "\n")+"\n", 0o644)
}

// Exports reports whether ExportPodData is true in the plugin's configuration. If it is true, the plugin mounts the
// data that it receives. As in upstream (interlink-hq/interlink-slurm-plugin f8451d93, pkg/slurm/func.go), only an
// unquoted true, True or TRUE counts, also through an alias or with the tag !!bool. A file that cannot be parsed counts
// as false. The path of the file is in the unit. Without a unit, Exports reads Config.
func (m *Machine) Exports() (bool, error) {
	path := Config
	if unit, err := m.Read(Unit); err == nil {
		path = Builtin
		for line := range strings.Lines(unit) {
			_, after, found := strings.Cut(strings.TrimSpace(line), "SLURMCONFIGPATH=")
			if found && !strings.HasPrefix(strings.TrimSpace(line), "#") {
				path = strings.Trim(strings.Fields(after + " ")[0], `"'`)
			}
		}
	}
	text, err := m.Read(path)
	if err != nil {
		return false, fmt.Errorf("the plugin's configuration: %w", err)
	}
	var read struct {
		Export yaml.Node `yaml:"ExportPodData"`
	}
	if err := yaml.Unmarshal([]byte(text), &read); err != nil {
		return false, nil
	}
	said := &read.Export
	if said.Kind == yaml.AliasNode {
		said = said.Alias
	}
	if said.Kind != yaml.ScalarNode || !slices.Contains([]string{"true", "True", "TRUE"}, said.Value) {
		return false, nil
	}
	return said.Style == 0 || said.Style&yaml.TaggedStyle != 0 && said.Tag == "!!bool", nil
}

// Say appends a line to the plugin's log.
func (m *Machine) Say(level, format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	file, err := m.files.OpenFile(strings.TrimPrefix(Log, "/"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	fmt.Fprintf(
		file, "time=%q level=%s msg=%q\n", time.Now().UTC().Format(time.RFC3339), level, fmt.Sprintf(format, args...),
	)
}
