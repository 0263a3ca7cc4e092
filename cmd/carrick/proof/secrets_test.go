package proof

import (
	"encoding/base64"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/commands"
	"carrick/cmd/carrick/guides"
	"carrick/steps"
)

// The secrets in the clusters are known, and every command of every guide runs. No secret may occur in any output.
func TestVerifySecrets(t *testing.T) {
	t.Parallel()
	eachGuide(t, func(s site) {
		cases.LeftOut(s.T, "secret", s.guide.Name)
		secrets := s.plant()
		o := s.office()
		o.useAll()
		o.walkScreens(madeByThen)
		s.collect(secrets, 4) // what carrick made is among them now
		o.lookAtSpoilt("proof")
		if h := o.run(carricktest.CommandWithin, "undo", "--yes", "link.yaml"); h.code != 0 {
			s.Errorf("undo: exit code %d:\n%s", h.code, h.text.String())
		}
		o.allCommands()
		o.runs = append(o.runs, o.files(), s.committed())
		s.Logf("%d forms of secrets are looked for", secrets.Len())
		for _, h := range o.runs {
			cases.Run(s.T, "secret", h.name, func(t *testing.T) {
				if h.text.Len() == 0 {
					t.Error("it let nothing out: this proves nothing")
				}
				if found := secrets.Find(append(h.text.Bytes(), h.listed...)); len(found) > 0 {
					t.Errorf("it lets out %s", strings.Join(found, ", "))
				}
			})
		}
		cases.Run(s.T, "secret", "one that is planted is found", func(t *testing.T) {
			leak := base64.StdEncoding.EncodeToString([]byte("level=debug password=" + plantedPassword))
			if err := os.WriteFile(filepath.Join(o.dir, "state", "leak.log"), []byte(leak), 0o600); err != nil {
				t.Fatal(err)
			}
			if found := secrets.Find(o.files().text.Bytes()); len(found) != 1 {
				t.Errorf("found %v", found)
			}
		})
	})
}

// useAll runs every command, before and after the set-up exists.
func (o *office) useAll() {
	o.run(carricktest.Quick, "version")
	o.run(carricktest.Quick, "guides")
	o.run(carricktest.Quick, "guides", o.guide.Name)
	o.run(carricktest.Quick, "completion", "bash")
	o.run(carricktest.Quick, "help", "exit-codes")
	o.run(carricktest.Quick, "explain")
	o.run(carricktest.Quick, "explain", o.guide.Name+"/"+o.guide.Cells()[0].Check)
	looks := func() {
		for _, format := range []string{"table", "json", "yaml", "junit"} {
			o.run(carricktest.CommandWithin, "check", "link.yaml", "-o", format)
		}
		o.run(carricktest.CommandWithin, "diff", "link.yaml")
	}
	looks()
	o.run(carricktest.CommandWithin, "apply", "--dry-run", "link.yaml")
	if h := o.run(carricktest.CommandWithin, "apply", "--yes", "link.yaml"); h.code != 0 {
		o.Fatalf("apply: exit code %d:\n%s", h.code, h.text.String())
	}
	o.run(carricktest.CommandWithin, "check", "link.yaml", "--wait", "5m")
	looks()
	o.runUntil(len(o.guide.Cells()), "check", "--watch", "link.yaml")
	o.run(carricktest.CommandWithin, "apply", "--yes", "link.yaml")
	o.run(carricktest.CommandWithin, "export", "link.yaml", "out")
	o.run(carricktest.CommandWithin, "export", "--force", "link.yaml", "out")
	reader, err := age.GenerateX25519Identity()
	if err != nil {
		o.Fatal(err)
	}
	for _, side := range steps.Sides {
		flag := o.guide.Sides[side].Flag()
		for file, to := range map[string][]string{"open": nil, "sealed": {"--to", reader.Recipient().String()}} {
			args := append([]string{"handover", "link.yaml", "--side", flag, "-o", flag + "." + file + ".facts"}, to...)
			if h := o.run(carricktest.CommandWithin, args...); h.code != 0 {
				o.Errorf("%s: exit code %d:\n%s", h.name, h.code, h.text.String())
			}
		}
	}
	o.run(carricktest.CommandWithin, "undo", "--dry-run", "link.yaml")
	o.run(
		carricktest.CommandWithin, "adopt", o.guide.Name, "-o", "adopted.yaml", "--context",
		o.box.Contexts[clustertest.Local], "--remote-context", o.box.Contexts[clustertest.Remote],
	)
	bad := filepath.Join(o.dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("apiVersion: carrick/v1alpha1\nkind: Link\nanswers: {}\n"), 0o600); err != nil {
		o.Fatal(err)
	}
	o.run(carricktest.Quick, "check", "bad.yaml")
}

// allCommands fails the test for a command that was not run. The demo is exempt, because it has its own clusters
// without other users' data.
func (o *office) allCommands() {
	ran := map[string]bool{"demo": true}
	for _, h := range o.runs {
		command, _, _ := strings.Cut(h.name, " ")
		ran[command] = true
	}
	for _, c := range commands.Root(commands.Program{Guides: guides.All()}, nil, io.Discard, io.Discard).Commands() {
		if !c.Hidden && c.IsAvailableCommand() && !ran[c.Name()] {
			o.Errorf("no secret was looked for in what carrick %s lets out", c.Name())
		}
	}
}

// committed returns golden files and other test files as one letOut.
func (s site) committed() *letOut {
	h := &letOut{name: "what is committed for tests"}
	n := 0
	for _, root := range []string{
		"../../../testdata", "../../../assets", "../../../ui/testdata", "../../../steps", "../../../cluster",
	} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.Contains(path, "testdata") && !strings.Contains(path, "assets") {
				return err
			}
			text, err := os.ReadFile(path)
			n++
			h.text.Write(text)
			return err
		})
		if err != nil {
			s.Fatal(err)
		}
	}
	if n < 20 {
		s.Fatalf("%d files", n)
	}
	return h
}
