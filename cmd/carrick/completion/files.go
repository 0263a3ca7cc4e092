package completion

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"carrick/cluster/clean"
	"carrick/cmd/carrick/demo"
	"carrick/cmd/carrick/plain"
	"carrick/steps"
	"carrick/steps/linkfile"
)

const (
	linkSize  = 1 << 18 // maximum size of a link file in bytes; larger files are skipped
	filesRead = 500     // maximum number of files to read in one directory
)

// completeLink offers link files. If the directory has none, it offers YAML files.
func (a *completion) completeLink(
	_ *cobra.Command, args []string, toComplete string,
) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFile
	}
	if links := linkFiles(toComplete); len(links) > 0 {
		return links, noFile
	}
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeRoot offers commands and link files.
func (a *completion) completeRoot(
	cmd *cobra.Command, args []string, toComplete string,
) ([]string, cobra.ShellCompDirective) {
	for _, c := range cmd.Commands() {
		if len(args) == 0 && !c.Hidden && strings.HasPrefix(c.Name(), toComplete) {
			return linkFiles(toComplete), noFile // no list of file extensions, because cobra adds the commands to it
		}
	}
	return a.completeLink(cmd, args, toComplete)
}

func (a *completion) completeExport(
	cmd *cobra.Command, args []string, toComplete string,
) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return a.completeLink(cmd, args, toComplete)
	case 1:
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return nil, noFile
}

// linkFiles returns the link files with the given path prefix. Each has a description of its sides.
func linkFiles(prefix string) []string {
	folder, start := filepath.Split(prefix)
	entries, err := os.ReadDir(filepath.Clean(folder))
	if err != nil {
		return nil
	}
	var out []string
	read := 0
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if !strings.HasPrefix(e.Name(), start) || (ext != ".yaml" && ext != ".yml") || read == filesRead {
			continue
		}
		read++
		if head, ok := linkHead(folder + e.Name()); ok {
			out = append(out, folder+e.Name()+"\t"+clean.Text(plain.OneLine(head.Metadata.Name+": "+head.Guide)))
		}
	}
	return out
}

// linkHead parses the file at path. ok is false if it is not a link file.
func linkHead(path string) (l linkfile.Link, ok bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > linkSize {
		return l, false
	}
	text, err := os.ReadFile(path)
	if err != nil || yaml.Unmarshal(text, &l) != nil {
		return l, false
	}
	return l, l.Kind == "Link" && strings.HasPrefix(l.APIVersion, "carrick/")
}

// completeSecret offers keys, and files after KEY=@.
func (a *completion) completeSecret(
	_ *cobra.Command, args []string, toComplete string,
) ([]string, cobra.ShellCompDirective) {
	const noSpace = noFile | cobra.ShellCompDirectiveNoSpace
	if key, file, ok := strings.Cut(toComplete, "=@"); ok {
		return begins(filesThat(key+"=@", file), toComplete), noSpace
	}
	var out []string
	for _, g := range a.guidesOf(args) {
		for i := range g.Steps {
			for _, q := range g.Steps[i].Ask {
				if q.Secret {
					out = append(out, q.Key+"=@\t"+q.Title+", from a file", q.Key+"=-\t"+q.Title+", from standard input")
				}
			}
		}
	}
	return begins(unique(out), toComplete), noSpace
}

// filesThat returns the files and directories whose paths begin with start. It adds prefix to each result.
func filesThat(prefix, start string) []string {
	folder, _ := filepath.Split(start)
	entries, err := os.ReadDir(filepath.Clean(folder))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		name := prefix + folder + e.Name()
		if e.IsDir() {
			name += "/"
		}
		out = append(out, name)
	}
	return out
}

// completeFault asks the sandbox program for its faults. This does not start a control plane.
func (a *completion) completeFault(
	cmd *cobra.Command, args []string, toComplete string,
) ([]string, cobra.ShellCompDirective) {
	guide := a.Guides[0].Name
	if len(args) > 0 {
		guide = args[0]
	}
	if _, err := steps.FindGuide(a.Guides, guide); err != nil {
		return nil, noFile
	}
	var out []string
	for _, f := range demo.KnownFaults(cmd.Context(), guide) {
		out = append(out, plain.OneLine(clean.Text(f.Name))+"\t"+plain.OneLine(clean.Text(f.Title)))
	}
	return begins(out, toComplete), noFile
}
