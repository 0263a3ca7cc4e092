package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/guides"
)

// arrow lists packages that the packages under a path must not import. Test files are exempt.
type arrow struct {
	under, except string
	alone         bool // what is in under itself, not in folders below it
	never         []string
	but           []string // packages that may be imported although never covers them
	why           string
}

var arrows = []arrow{
	{
		under: "cluster", never: []string{"carrick/steps", "carrick/ui", "carrick/cmd", "carrick/assets"},
		why: "cluster knows no step, side or screen",
	},
	{under: "cluster/clean", never: []string{"k8s.io/", "carrick/"}, why: "everything may clean text with it"},
	{
		under: "cluster", alone: true, never: []string{"carrick/cluster/host", "carrick/cluster/web"},
		why: "hosts and HTTP APIs are next to clusters, or above them",
	},
	{
		under: "cluster/host", never: []string{"carrick/cluster/web", "carrick/cluster/chart"},
		why: "a host has files, commands and kubeconfigs",
	},
	{
		under: "cluster/web", never: []string{"k8s.io/", "carrick/"},
		but: inCluster("clean", "failure", "masked", "probe", "tracked"), why: "an HTTP API is no cluster",
	},
	{
		under: "cluster/tracked", never: []string{"k8s.io/", "carrick/"}, but: inCluster("failure"),
		why: "a trace knows no cluster and no host",
	},
	{
		under: "cluster/failure", never: []string{"carrick/", "k8s.io/client-go"},
		but: inCluster("clean", "kubeconfig", "permission"), why: "errors are explained without a cluster",
	},
	{
		under: "cluster/kubeconfig", never: []string{"carrick/"},
		but: inCluster("bearer", "clean", "masked", "nearest", "probe"), why: "a kubeconfig is read without its cluster",
	},
	{
		under: "cluster/diff", never: []string{"k8s.io/client-go", "carrick/"}, but: inCluster("clean"),
		why: "objects are compared without a cluster",
	},
	{
		under: "cluster/certificate", never: []string{"k8s.io/", "carrick/"}, but: inCluster("clean", "masked"),
		why: "certificates are created without a cluster",
	},
	{
		under: "cluster/bearer", never: []string{"k8s.io/", "carrick/"}, but: inCluster("clean", "masked"),
		why: "a token is decoded without a cluster",
	},
	{under: "cluster/masked", never: []string{"k8s.io/", "carrick/"}, why: "everything may hold a secret in it"},
	{under: "cluster/permission", never: []string{"k8s.io/", "carrick/"}, why: "everything may name what can be allowed"},
	{
		under: "cluster/nearest", never: []string{"k8s.io/", "carrick/"},
		why: "everything may ask for the name that was meant",
	},
	{
		under: "cluster/probe", never: []string{"k8s.io/", "carrick/"}, but: []string{"carrick/cluster/clean"},
		why: "probe looks from this machine and knows no Kubernetes",
	},
	{
		under: "steps",
		never: []string{
			"carrick/ui", "carrick/cmd", "carrick/assets", "github.com/charmbracelet", "github.com/muesli", "k8s.io/client-go",
			"helm.sh",
		},
		why: "steps knows no screen, and no cluster but through the packages under cluster",
	},
	{
		under: "steps", alone: true, never: []string{"carrick/steps/"},
		why: "the vocabulary comes before all that is said with it",
	},
	{under: "steps/linkfile", never: []string{"carrick/steps/"}, why: "a link file is read without a cluster"},
	{
		under: "steps/inventory", never: []string{"carrick/steps/"}, but: []string{"carrick/steps/linkfile"},
		why: "actions use inventories, not the other way round",
	},
	{
		under: "steps/action",
		never: []string{"carrick/steps/engine", "carrick/steps/check", "carrick/steps/certs", "carrick/steps/guides"},
		why:   "actions don't know who runs them",
	},
	{
		under: "steps/engine", never: []string{"carrick/steps/check", "carrick/steps/certs", "carrick/steps/guides"},
		why: "the engine knows no guide by name",
	},
	{
		under: "steps/check", never: []string{"carrick/steps/engine", "carrick/steps/guides"},
		why: "shared checks mention no product",
	},
	{
		under: "steps/certs", never: []string{"carrick/steps/engine", "carrick/steps/guides"},
		why: "who makes certificates knows no guide",
	},
	{
		under: "steps/guides", never: []string{"carrick/steps/engine"}, why: "guides are data: they don't know who runs them",
	},
	{under: "steps/facts", never: []string{"carrick/", "k8s.io/"}, why: "a facts file knows no guide and no cluster"},
	{
		under: ".", except: "steps/facts", never: []string{"filippo.io/age"},
		why: "seals are made and opened in steps/facts and nowhere else",
	},
	{
		under: "ui",
		never: []string{
			"k8s.io/", "helm.sh", "carrick/steps/check", "carrick/steps/certs", "carrick/steps/inventory",
			"carrick/steps/guides", "carrick/cmd", "carrick/assets",
		},
		why: "ui knows no guide and touches no cluster",
	},
	{
		under: "ui/lines", never: []string{"carrick/ui/background", "github.com/charmbracelet", "github.com/muesli"},
		why: "lines need no screen: nothing of Charm's",
	},
	{
		under: "ui/model", never: []string{"carrick/ui", "github.com/charmbracelet", "github.com/muesli"},
		why: "it is used with a screen and without",
	},
	{
		under: "ui/farewell", never: []string{"carrick/ui", "github.com/charmbracelet", "github.com/muesli"},
		why: "it is used with a screen and without",
	},
	{under: "assets", never: []string{"carrick/"}, why: "assets imports nothing of ours"},
	{
		under: "cmd", never: []string{"k8s.io/client-go", "github.com/charmbracelet", "helm.sh"},
		why: "cmd prints; clusters and screens are others' work",
	},
	{
		under: "cmd/carrick", alone: true, never: []string{"carrick/ui", "carrick/cluster", "carrick/steps"},
		why: "main only starts the commands",
	},
	{
		under: "cmd/carrick/guides", never: []string{"carrick/cmd", "carrick/ui"}, why: "the list of guides knows no command",
	},
	{under: "cmd/carrick/plain", never: []string{"carrick/"}, why: "it only breaks and aligns text"},
	{under: "cmd/carrick/exit", never: []string{"carrick/cmd"}, why: "every package of the command line may use it"},
	{
		under: "cmd/carrick/format",
		never: []string{"carrick/cmd/carrick/commands", "carrick/cmd/carrick/help", "carrick/cmd/carrick/guides"},
		why:   "what is printed knows no command",
	},
	{
		under: "cmd/carrick/reference", never: []string{"carrick/cmd/carrick/commands", "carrick/steps/engine", "carrick/ui"},
		why: "guides are described without a cluster",
	},
	{
		under: "cmd/carrick/export", never: []string{"carrick/cmd/carrick/commands", "carrick/ui"},
		why: "an export knows no command",
	},
	{
		under: "cmd/carrick/demo", never: []string{"carrick/cmd/carrick/commands", "carrick/steps/engine"},
		why: "it drives the sandbox and opens no session",
	},
	{
		under: "cmd/carrick/help", never: []string{"carrick/cmd/carrick/commands", "carrick/steps/engine"},
		why: "help is given without a session",
	},
	{
		under: "cmd/carrick/completion", never: []string{"carrick/cmd/carrick/commands", "carrick/steps/engine"},
		why: "completion opens no session",
	},
	{
		under: "cmd/carrick/commands",
		never: []string{"carrick/steps/guides", "carrick/cmd/carrick/guides", "carrick/assets"},
		why:   "commands are given their guides",
	},
	{
		under: ".", except: "ui", never: []string{"github.com/charmbracelet", "github.com/muesli"},
		why: "ui is the only importer of Charm's modules",
	},
	{under: ".", except: "cluster", never: []string{"k8s.io/client-go"}, why: "client-go is in cluster and nowhere else"},
	{
		under: ".", except: "cluster/chart", never: []string{"helm.sh", "oras.land", "github.com/fluxcd"},
		why: "Helm's SDK is in cluster/chart and nowhere else",
	},
	{
		under: "cluster/chart",
		never: []string{
			"helm.sh/helm/v4/pkg/action", "helm.sh/helm/v4/pkg/cli", "helm.sh/helm/v4/pkg/getter",
			"helm.sh/helm/v4/pkg/registry", "helm.sh/helm/v4/pkg/postrenderer",
		},
		why: "no plugins, no user's Helm configuration, and 450 packages less",
	},
	{
		under: ".", except: "cluster/sandbox", never: []string{"carrick/cluster/sandbox"},
		why: "the sandbox is nobody's import",
	},
	{
		under: "cluster/sandbox", never: []string{"carrick/steps", "carrick/ui", "carrick/assets", "carrick/cluster/probe"},
		why: "the sandbox imports nothing of the main module",
	},
}

// inCluster returns the paths of packages under cluster.
func inCluster(all ...string) []string {
	for i, name := range all {
		all[i] = "carrick/cluster/" + name
	}
	return all
}

// TestArrows parses imports in-process, because a test that ran go list would pass with a stale result from Go's cache.
func TestArrows(t *testing.T) {
	files := map[string][]string{} // file: imports
	root := "../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() && rel != "." && (strings.HasPrefix(d.Name(), ".") || rel == "bin") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(rel, "test/") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			files[filepath.ToSlash(rel)] = append(files[filepath.ToSlash(rel)], name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range arrows {
		seen := 0
		for file, imports := range files {
			if !within(file, a.under) || (a.alone && path.Dir(file) != a.under) || (a.except != "" && within(file, a.except)) {
				continue
			}
			seen++
			for _, name := range imports {
				if !slices.Contains(a.but, name) &&
					slices.ContainsFunc(
						a.never, func(p string) bool { return name == p || strings.HasPrefix(name, strings.TrimSuffix(p, "/")+"/") },
					) {
					t.Errorf("%s imports %s: %s", file, name, a.why)
				}
			}
		}
		if seen == 0 {
			t.Errorf("no file under %q: this arrow tests nothing", a.under)
		}
	}
}

func within(file, dir string) bool { return dir == "." || strings.HasPrefix(file, dir+"/") }

// TestGuidesDoNotImportEachOther verifies that no guide imports another guide.
func TestGuidesDoNotImportEachOther(t *testing.T) {
	names := map[string]bool{}
	for _, g := range guides.All() {
		names[g.Name] = true
	}
	if len(names) == 0 {
		t.Fatal("there are no guides")
	}
	for name := range names {
		paths, err := filepath.Glob("../../steps/guides/" + name + "/*.go")
		if err != nil || len(paths) == 0 {
			t.Errorf("guide %s has no folder of its own under steps/guides", name)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range f.Imports {
				imported, _ := strconv.Unquote(spec.Path.Value)
				if other, ok := strings.CutPrefix(imported, "carrick/steps/guides/"); ok && names[other] {
					t.Errorf("%s imports guide %s", path, other)
				}
			}
		}
	}
}

// TestNothingKnowsTheSandbox verifies that the checked code cannot know that it runs in a demo.
func TestNothingKnowsTheSandbox(t *testing.T) {
	seen := 0
	for _, dir := range []string{"../../steps", "../../ui"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.Contains(path, "/stepstest/") {
				return err
			}
			seen++
			b, err := carricktest.ReadFile(path)
			if err == nil && strings.Contains(strings.ToLower(b), "sandbox") {
				t.Errorf("%s speaks of the sandbox", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen == 0 {
		t.Error("looked at nothing")
	}
}
