package ui

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carrick/steps"
	"carrick/steps/facts"
)

// fileOfFacts writes a facts file of the provider, encrypted with a passphrase.
func fileOfFacts(t *testing.T, link string) string {
	t.Helper()
	to, err := facts.ForPassphrase("correct horse")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	f := &facts.File{
		APIVersion: facts.Version, Kind: facts.Kind, Guide: "tunnel", Link: link, Side: string(steps.Remote),
		Role:  "provider",
		Taken: now, Until: now.Add(time.Hour), Facts: map[string]any{"name": "rome"},
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	key, err := facts.OwnKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Seal(map[string]string{"word": "sesame"}, to, key); err != nil {
		t.Fatal(err)
	}
	data, err := f.Encode(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rome.facts")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The user chooses a facts file instead of a context for a side. The wizard reads it immediately, asks for its
// passphrase without echo, and suggests its link name.
func TestAFileOfFactsStandsForASide(t *testing.T) {
	var path string
	var given []string
	o := clusters(t)
	o.Unlock = func(file, phrase string) error {
		if given = append(given, file+" "+phrase); phrase != "correct horse" {
			return errors.New("wrong passphrase")
		}
		return nil
	}
	onStage(t, o, 80, 24, func(p *play) {
		path = fileOfFacts(t, "oslo-rome") // by the clock of the stage
		p.press("enter", "enter", "h")
		p.shows("facts file", "carrick handover LINK --side provider -o provider.facts")
		p.press(strings.Split(path+".no", "")...)
		p.press("enter")
		p.shows("no such")
		p.press("esc")
		p.shows("pick a context")
		p.press("h")
		p.press(strings.Split(path, "")...)
		p.press("enter")
		p.shows("passphrase of the file")
		p.press(strings.Split("wrong", "")...)
		p.hides("wrong")
		p.press("enter")
		p.shows("wrong passphrase")
		p.press(strings.Split("correct horse", "")...)
		p.press("enter")
		p.shows("oslo-rome", "rome.facts", "enter begin", "signed with the key", "SHA256:", "before the first change")
	})
	if len(given) != 2 || given[1] != path+" correct horse" {
		t.Errorf("given: %q", given)
	}
}

// The wizard rejects a facts file of the wrong side when the user enters it.
func TestAFileOfTheOtherSideIsRefused(t *testing.T) {
	onStage(t, clusters(t), 80, 24, func(p *play) {
		path := fileOfFacts(t, "oslo-rome")
		p.press("enter", "h")
		p.press(strings.Split(path, "")...)
		p.press("enter")
		p.shows("provider; expected the facts of the consumer")
	})
}
