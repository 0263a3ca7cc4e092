package commands

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"carrick/cmd/carrick/exit"
	"carrick/cmd/carrick/format"
)

type versionDoc struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`   // source revision; empty if unknown
	Modified bool   `json:"modified,omitempty"` // the source had uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"` // for example linux/amd64
}

func versionOf(release, commit string) versionDoc {
	v := versionDoc{Version: release, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok || commit != "" {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (v versionDoc) String() string {
	source := "commit " + cmp.Or(v.Commit, "unknown")
	if v.Modified {
		source += " with changes"
	}
	return fmt.Sprintf("carrick %s (%s) %s %s", v.Version, source, v.Go, v.Platform)
}

func (a *app) version() *cobra.Command {
	output := "text"
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version of carrick, its commit and its Go version",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Usagef("version accepts no arguments")
			}
			return format.Valid(output, format.ByCommand["version"]...)
		},
		RunE: func(*cobra.Command, []string) error {
			if output != "text" {
				return format.Document(a.out, output, versionOf(a.Release, a.Commit))
			}
			_, err := fmt.Fprintln(a.out, versionOf(a.Release, a.Commit))
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "`format`: text, json or yaml")
	return cmd
}
