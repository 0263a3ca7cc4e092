package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"

	"carrick/assets"
	"carrick/cluster"
	"carrick/cmd/carrick/commands"
	"carrick/cmd/carrick/guides"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
	"carrick/steps/facts"
)

// duoMain is carrick with a guide for two admins that needs no cluster: both sides
// are folders, and each needs what the other one shares, once a secret.
func duoMain() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := commands.Run(ctx, commands.Program{Guides: append(guides.All(), duo(), twin()), Assets: assets.FS}, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func duo() *steps.Guide {
	return &steps.Guide{
		Name: "duo", Title: "Duo", About: "Two folders that tell each other a name and a word.", Page: "https://example.org/duo",
		Sides: map[steps.Side]steps.Role{steps.Local: {Name: "guest", Kind: steps.Host}, steps.Remote: {Name: "house", Kind: steps.Host}},
		Steps: []steps.Step{{
			Name: "names", Title: "Names", Why: "Each side knows the other by name.",
			Ask: []steps.Question{{Key: "duo.room", Title: "Room", Help: "any", Kind: steps.Port, Default: steps.Fixed(7, "the usual one")}},
			Facts: []steps.Fact{
				{Name: "name", Title: "the name", On: steps.Both, Shared: true, Learn: line("etc/name")},
				{Name: "word", Title: "the word", On: steps.Remote, Shared: true, Secret: true, Learn: word},
			},
			Actions: []steps.Action{
				{Name: "greet", Title: "Note the house's name", On: steps.Local, Doer: noted("/etc/greeting", "name")},
				{Name: "enter", Title: "Note the house's word", On: steps.Local, Needs: []string{"greeted"}, Doer: noted("/etc/entry", "word")},
			},
			Checks: []steps.Check{
				{Name: "named", Title: "it has a name", On: steps.Both, Why: "it is called by it", Run: there("/etc/name")},
				{Name: "greeted", Title: "the guest knows the house", On: steps.Local, Why: "it asks for it", Mend: "greet", Needs: []string{"peer/named"}, Run: there("/etc/greeting")},
				{Name: "entered", Title: "the guest knows the word", On: steps.Local, Why: "it is asked for it", Mend: "enter", Needs: []string{"greeted"}, Run: there("/etc/entry")},
			},
		}},
	}
}

// twin is the same guide under another name.
func twin() *steps.Guide {
	g := duo()
	g.Name, g.Title = "twin", "Twin"
	return g
}

func line(path string) func(context.Context, steps.Env) (any, error) {
	return func(ctx context.Context, e steps.Env) (any, error) {
		text, err := e.Host.Read(ctx, "/"+path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, steps.Absent("the %s has no %s", e.SideName(), path)
		}
		return strings.TrimSpace(string(text)), err
	}
}

func word(ctx context.Context, e steps.Env) (any, error) {
	v, err := line("etc/word")(ctx, e)
	if err != nil {
		return nil, err
	}
	return cluster.Mask(v.(string)), nil
}

func noted(path, fact string) steps.Doer {
	return action.File{Path: path, Mode: 0o600, Content: func(_ context.Context, e steps.Env) (cluster.Masked, error) {
		if fact == "word" {
			return e.Peer.Masked(fact)
		}
		text, err := e.Peer.Text(fact)
		return cluster.Mask(text + "\n"), err
	}}
}

func there(path string) func(context.Context, steps.Env) steps.Result {
	return func(ctx context.Context, e steps.Env) steps.Result {
		text, err := e.Host.Read(ctx, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return steps.Failed("there is no "+path, "write it")
		case err != nil:
			return steps.Unseen(err)
		}
		return steps.Passed("%s has %d bytes", path, len(text))
	}
}

// forge FILE WHAT writes a facts file again with one thing changed, signed with the script's own key; "stranger": with
// another one.
func forge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: forge FILE WHAT")
	}
	path := ts.MkAbs(args[0])
	key, err := facts.ParseKey([]byte(ts.ReadFile(".config/carrick/signing-key")))
	ts.Check(err)
	f, err := facts.Decode([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	switch args[1] {
	case "stale":
		f.Taken, f.Until = f.Taken.Add(-48*time.Hour), f.Until.Add(-48*time.Hour)
	case "old":
		f.Taken = f.Taken.Add(-time.Hour)
	case "future":
		f.Taken, f.Until = f.Taken.Add(48*time.Hour), f.Until.Add(48*time.Hour)
	case "open":
		f.Facts["word"] = "sesame-4711-open"
	case "cut seal":
		f.Sealed.Age = f.Sealed.Age[:len(f.Sealed.Age)/2]
	case "bad verdict":
		f.Checks["named"] = facts.Told{Status: "splendid"}
	case "stranger":
		key, _, err = facts.NewKey()
		ts.Check(err)
	case "escape":
		f.Facts["name"] = "rome\x1b]0;owned\x07"
	default:
		ts.Fatalf("nothing is called %s", args[1])
	}
	data, err := f.Encode(key)
	ts.Check(err)
	ts.Check(os.WriteFile(path, data, 0o600))
}

// signer FILE VARIABLE keeps the fingerprint of the key that signed a facts file.
func signer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: signer FILE VARIABLE")
	}
	f, err := facts.Decode([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	ts.Setenv(args[1], f.Signer)
}

// sshKey KIND NAME writes an SSH private key into NAME: ed25519, locked (with a passphrase) or ecdsa.
func sshKey(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sshkey ed25519|locked|ecdsa NAME")
	}
	_, text, err := facts.NewKey()
	ts.Check(err)
	switch args[0] {
	case "locked":
		private, err := ssh.ParseRawPrivateKey(text)
		ts.Check(err)
		block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("correct horse"))
		ts.Check(err)
		text = pem.EncodeToMemory(block)
	case "ecdsa":
		curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		ts.Check(err)
		block, err := ssh.MarshalPrivateKey(curve, "")
		ts.Check(err)
		text = pem.EncodeToMemory(block)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), text, 0o600))
}

// ageKey NAME writes a key that opens seals into NAME, and who it is into NAME.pub.
func ageKey(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: agekey NAME")
	}
	key, err := age.GenerateX25519Identity()
	ts.Check(err)
	for name, text := range map[string]string{args[0]: key.String(), args[0] + ".pub": key.Recipient().String()} {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text+"\n"), 0o600))
	}
}

func TestTheGuideForTwoIsValid(t *testing.T) {
	if err := engine.Validate([]*steps.Guide{duo(), twin()}, os.DirFS(t.TempDir())); err != nil {
		t.Error(err)
	}
}
