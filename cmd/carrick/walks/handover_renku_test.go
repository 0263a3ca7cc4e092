package walks

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"filippo.io/age"

	"carrick/cmd/carrick/carricktest"
	"carrick/steps"
	"carrick/steps/facts"
	"carrick/steps/guides/renku"
)

// The file contains every fact that Renku's sides share. A secret fact is encrypted. A fact that does not exist is
// named as absent.
func renkuHandsOver(t *testing.T) {
	g := carricktest.NewGitops(t, "renku", carricktest.GitopsLink)
	g.Write("token", carricktest.RenkuToken(t, g.Box))
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	g.Run("carrick", "apply", "--yes", "link.yaml", "--step", "prerequisites,identity,kubeconfig")
	var secrets []string
	for side, role := range map[steps.Side]string{steps.Local: "local", steps.Remote: "remote"} {
		g.Run(
			"carrick", "handover", "link.yaml", "--side", role, "-o", role+".facts", "--to", key.Recipient().String(),
			"--secret", "renku.token=@token",
		)
		text, err := os.ReadFile(filepath.Join(g.Dir, role+".facts"))
		if err != nil {
			t.Fatal(err)
		}
		f, err := facts.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Unread) > 0 {
			t.Errorf("%s: not read: %v", role, f.Unread)
		}
		if err := f.Unseal(facts.Keys{key}); err != nil {
			t.Error(err)
		}
		shared := 0
		for _, step := range renku.Guide().Steps {
			for _, fact := range step.Facts {
				if !fact.Shared || !fact.On.Covers(side) {
					continue
				}
				shared++
				_, open := f.Facts[fact.Name]
				_, absent := f.Absent[fact.Name]
				sealed := f.Sealed != nil && slices.Contains(f.Sealed.Names, fact.Name)
				places := 0
				for _, there := range []bool{open, absent, sealed} {
					if there {
						places++
					}
				}
				if places != 1 || (fact.Secret && open) {
					t.Errorf("%s: %s: in the open %v, sealed %v, absent %v", role, fact.Name, open, sealed, absent)
				}
				if v, ok := f.Secret(fact.Name); ok {
					secrets = append(secrets, v)
				}
			}
		}
		t.Logf("%s: %d shared, %d in the open, %d absent: %v", role, shared, len(f.Facts), len(f.Absent), f.Absent)
	}
	if len(secrets) == 0 {
		t.Fatal("no secret was sealed")
	}
	for _, role := range []string{"local", "remote"} {
		g.NoSecrets(role+".facts", "", secrets...)
	}
}
