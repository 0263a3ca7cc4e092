package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"carrick/cluster"
	"carrick/cluster/host"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
	"carrick/cluster/web"
	"carrick/steps"
	"carrick/steps/facts"
	"carrick/steps/linkfile"
)

func signingKey(t *testing.T) *facts.Key {
	t.Helper()
	key, _, err := facts.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writeSigned(t *testing.T, path string, f *facts.File, key *facts.Key) {
	t.Helper()
	text, err := f.Encode(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// carrick uses no secret together with a facts file before the file's signer is confirmed. The link file stores the
// confirmed signer, and another signer is rejected.
func TestASignerIsConfirmedOnce(t *testing.T) {
	own := func(name string) func(context.Context, steps.Env) (any, error) {
		return func(_ context.Context, e steps.Env) (any, error) { return e.Peer.Text(name) }
	}
	g := &steps.Guide{
		Name: "duo",
		Sides: map[steps.Side]steps.Role{
			steps.Local: {Name: "guest", Kind: steps.Host}, steps.Remote: {Name: "house", Kind: steps.Host},
		},
		API: func(_ context.Context, e steps.Env) (web.Address, error) {
			base, err := e.Peer.Text("address")
			return web.Address{Base: base}, err
		},
		Steps: []steps.Step{{
			Name: "one",
			Ask:  []steps.Question{{Key: "port", Title: "Port", Help: "h", Kind: steps.Text, On: steps.Remote}},
			Facts: []steps.Fact{
				{Name: "address", On: steps.Remote, Shared: true},
				{Name: "word", On: steps.Remote, Shared: true, Secret: true},
				{Name: "copied", On: steps.Local, Learn: own("address")},
				{Name: "kubeconfig", On: steps.Local, Secret: true, Learn: func(_ context.Context, e steps.Env) (any, error) {
					at, err := e.Own.Text("copied") // by another fact
					return masked.New("token for " + at + ":" + e.Answers.Text("port")), err
				}},
			},
		}},
	}
	mine, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	to, err := facts.For([]string{mine.Recipient().String()})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	file := func(key *facts.Key) *facts.File {
		f := &facts.File{
			APIVersion: facts.Version, Kind: facts.Kind, Guide: "duo", Link: "apart", Side: "remote", Role: "house",
			From: "alice", Taken: now, Until: now.Add(time.Hour),
			Facts: map[string]any{"address": "https://house.example.org"}, Answers: map[string]any{"port": "7"},
		}
		if err := f.Seal(map[string]string{"word": "sesame"}, to, key); err != nil {
			t.Fatal(err)
		}
		return f
	}
	key, other := signingKey(t), signingKey(t)
	dir := t.TempDir()
	path, linkPath := filepath.Join(dir, "theirs.facts"), filepath.Join(dir, "link.yaml")
	writeSigned(t, path, file(key), key)
	link := "apiVersion: carrick/v1alpha1\nkind: Link\nmetadata: {name: apart}\nguide: duo\nremote: {facts: " +
		"theirs.facts} # alice\n"
	if err := os.WriteFile(linkPath, []byte(link), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() (*Session, error) {
		l, err := linkfile.Load(linkPath, []*steps.Guide{g})
		if err != nil {
			t.Fatal(err)
		}
		end, err := OpenEndpoint(l, steps.Remote, g, kubeconfig.Access{}, facts.Keys{mine}, cluster.Options{})
		if err != nil {
			return nil, err
		}
		host, err := host.New(dir)
		if err != nil {
			t.Fatal(err)
		}
		s := NewSession(
			SessionOptions{Guide: g, Link: l, Endpoints: map[steps.Side]Endpoint{steps.Remote: end, steps.Local: {Host: host}}},
		)
		t.Cleanup(s.Close)
		return s, nil
	}
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	secrets := func(s *Session) (out []error) {
		e := s.probeEnv(t.Context(), steps.Local, &usage{})
		_, wordErr := e.Peer.Masked("word")
		_, apiErr := e.API()
		at, err := e.Own.Text("copied") // shown, and not sent anywhere
		if err != nil || at != "https://house.example.org" || e.Answers.Text("port") != "7" {
			t.Errorf("%q, %v", at, err)
		}
		if err := e.PeerUnconfirmed(); (err == nil) != (apiErr == nil) {
			t.Errorf("no key may be used with an address: %v", err)
		}
		m, ownErr := e.Own.Masked("kubeconfig")
		if ownErr == nil && m.Reveal() != "token for https://house.example.org:7" {
			t.Errorf("the kubeconfig is %q", m.Reveal())
		}
		return []error{wordErr, apiErr, ownErr}
	}
	for i, err := range secrets(s) {
		if err == nil || !strings.Contains(err.Error(), "is not confirmed yet") {
			t.Errorf("%d: a secret is used with an unconfirmed file: %v", i, err)
		}
	}

	list, err := s.Unconfirmed(t.Context())
	if err != nil || len(list) != 1 || list[0].Fingerprint != key.Fingerprint() {
		t.Fatalf("%v, %v", list, err)
	}
	for _, want := range []string{path, "written by alice", key.Fingerprint(), "compare the key with the house's admin"} {
		if !strings.Contains(list[0].String(), want) {
			t.Errorf("%q does not say %q", list[0], want)
		}
	}
	if err := os.Rename(linkPath, linkPath+".kept"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(linkPath, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Confirm(list...); err == nil || !s.unsure() {
		t.Errorf("a signer that was not saved counts: %v", err)
	}
	if err := errors.Join(os.Remove(linkPath), os.Rename(linkPath+".kept", linkPath)); err != nil {
		t.Fatal(err)
	}
	probe := &usage{}
	s.probeEnv(t.Context(), steps.Local, probe)
	if err := s.Confirm(list...); err != nil {
		t.Fatal(err)
	}
	select {
	case <-probe.answered:
	default:
		t.Error("no probe runs again")
	}
	for i, err := range secrets(s) {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if s, err = open(); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Unconfirmed(t.Context()); len(list) > 0 || err != nil {
		t.Errorf("asked again: %v, %v", list, err)
	}
	saved, err := os.ReadFile(linkPath)
	if want := "remote: {facts: theirs.facts, signer: '" + key.Fingerprint() + "'} # alice"; err != nil ||
		!strings.Contains(strings.NewReplacer("'", "", `"`, "").Replace(string(saved)), strings.ReplaceAll(want, "'", "")) {
		t.Errorf("the link file, %v:\n%s", err, saved)
	}

	writeSigned(t, path, file(other), other)
	for name, err := range map[string]error{
		"open": s.PeerFileFits(t.Context()), "opened": func() error { _, err := open(); return err }(),
	} {
		if err == nil {
			t.Errorf("%s: another key is allowed", name)
			continue
		}
		for _, want := range []string{
			path, key.Fingerprint(), other.Fingerprint(), "--signer " + other.Fingerprint(), "the house's admin",
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not say %q", name, err, want)
			}
		}
	}
}

// A facts file that a change used is the oldest that counts from then on, in the session and in later ones.
func TestAnOlderFactsFileIsRefused(t *testing.T) {
	g := &steps.Guide{
		Name: "duo",
		Sides: map[steps.Side]steps.Role{
			steps.Local: {Name: "guest", Kind: steps.Host}, steps.Remote: {Name: "house", Kind: steps.Host},
		},
		Steps: []steps.Step{{Name: "one"}},
	}
	key := signingKey(t)
	dir := t.TempDir()
	path, linkPath := filepath.Join(dir, "theirs.facts"), filepath.Join(dir, "link.yaml")
	now := time.Now().UTC().Truncate(time.Second)
	place := func(taken time.Time) {
		writeSigned(t, path, &facts.File{
			APIVersion: facts.Version, Kind: facts.Kind, Guide: "duo", Link: "apart", Side: "remote", Role: "house",
			Taken: taken, Until: now.Add(time.Hour),
		}, key)
	}
	open := func() (*Session, error) {
		l, err := linkfile.Load(linkPath, []*steps.Guide{g})
		if err != nil {
			t.Fatal(err)
		}
		end, err := OpenEndpoint(l, steps.Remote, g, kubeconfig.Access{}, nil, cluster.Options{})
		if err != nil {
			return nil, err
		}
		s := NewSession(SessionOptions{
			Guide: g, Link: l, Endpoints: map[steps.Side]Endpoint{steps.Remote: end, steps.Local: {Absent: "it is left out"}},
		})
		t.Cleanup(s.Close)
		return s, nil
	}
	taken := func() time.Time {
		l, err := linkfile.Load(linkPath, []*steps.Guide{g})
		if err != nil {
			t.Fatal(err)
		}
		return l.Remote.Taken
	}
	link := "apiVersion: carrick/v1alpha1\nkind: Link\nmetadata: {name: apart}\nguide: duo\nremote: {facts: " +
		"theirs.facts}\n"
	if err := os.WriteFile(linkPath, []byte(link), 0o600); err != nil {
		t.Fatal(err)
	}
	place(now.Add(-time.Minute))
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), &Plan{}, steps.ApplyOptions{}, nil); err != nil || !taken().IsZero() {
		t.Errorf("a file of an unconfirmed signer counts: %v, %v", taken(), err)
	}
	list, err := s.Unconfirmed(t.Context())
	if err := errors.Join(err, s.Confirm(list...), s.Apply(t.Context(), &Plan{}, steps.ApplyOptions{}, nil)); err != nil {
		t.Fatal(err)
	}
	if !taken().Equal(now.Add(-time.Minute)) {
		t.Errorf("the link file has %v", taken())
	}

	place(now)
	if err := s.PeerFileFits(t.Context()); err != nil {
		t.Errorf("a newer file: %v", err)
	}
	place(now.Add(-time.Minute))
	if err := s.PeerFileFits(t.Context()); err == nil {
		t.Error("the older file counts in the session that has read a newer one")
	}
	if _, err := open(); err != nil {
		t.Errorf("the file that was used: %v", err)
	}
	place(now.Add(-2 * time.Minute))
	_, err = open()
	if err == nil {
		t.Fatal("an older file counts")
	}
	for _, want := range []string{
		path, now.Add(-2 * time.Minute).Format(time.RFC3339), now.Add(-time.Minute).Format(time.RFC3339),
		"the house's admin to run carrick handover", "delete remote.taken",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}

	// A change that can't keep what it used is not made; the key by hand is as good.
	place(now)
	if s, err = open(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(linkPath, linkPath+".kept"), os.Mkdir(linkPath, 0o700)); err != nil {
		t.Fatal(err)
	}
	err = s.Apply(t.Context(), &Plan{}, steps.ApplyOptions{}, nil)
	if want := "add remote.taken: " + now.Format(time.RFC3339) + " to the link file"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v does not say %q", err, want)
	}
}
