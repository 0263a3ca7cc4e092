package extension

import (
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"carrick/cluster/certificate"
)

// put writes a new pair for a name into a folder like a Secret volume: the files are symlinks through a symlink that is
// replaced.
func put(t *testing.T, folder, name string) {
	t.Helper()
	ca, err := certificate.NewAuthority("a CA", 1)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := certificate.Issue(ca, []string{name}, 30)
	if err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(folder, "..of-"+name)
	next := filepath.Join(folder, "..data_tmp")
	for _, err := range []error{
		os.Mkdir(fresh, 0o700),
		os.WriteFile(filepath.Join(fresh, "tls.crt"), pair.Cert, 0o600),
		os.WriteFile(filepath.Join(fresh, "tls.key"), []byte(pair.Key.Reveal()), 0o600),
		os.Symlink(filepath.Base(fresh), next),
		os.Rename(next, filepath.Join(folder, "..data")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range pairFiles {
		if err := os.Symlink(filepath.Join("..data", file), filepath.Join(folder, file)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
}

func shown(t *testing.T, c *servedPair) string {
	t.Helper()
	pair, err := c.current(nil)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf.DNSNames[0]
}

func TestARenewedCertificateIsShownAtOnce(t *testing.T) {
	folder, read := t.TempDir(), 0
	c := &servedPair{folder: folder, log: slog.New(slog.DiscardHandler), ends: func(*tls.Certificate) { read++ }}
	if pair, err := c.current(nil); err == nil {
		t.Fatalf("there is none yet, and %v is shown", pair)
	}
	put(t, folder, "first")
	if got := shown(t, c); got != "first" {
		t.Errorf("%s is shown", got)
	}
	shown(t, c)
	if read != 1 {
		t.Errorf("it was read %d times", read)
	}
	put(t, folder, "second")
	if got := shown(t, c); got != "second" || read != 2 {
		t.Errorf("%s is shown, after %d reads", got, read)
	}
}

func TestHalfAPairLeavesTheLastOneShown(t *testing.T) {
	folder := t.TempDir()
	c := &servedPair{folder: folder, log: slog.New(slog.DiscardHandler)}
	put(t, folder, "first")
	shown(t, c)
	put(t, folder, "second")
	key := filepath.Join(folder, "..data", "tls.key")
	kept, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	for situation, text := range map[string]string{"empty": "", "no key": "none"} {
		if err := os.WriteFile(key, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := shown(t, c); got != "first" {
			t.Errorf("%s: %s is shown", situation, got)
		}
	}
	if err := os.Remove(filepath.Join(folder, "tls.crt")); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, c); got != "first" {
		t.Errorf("gone: %s is shown", got)
	}
	if err := os.WriteFile(key, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..data", "tls.crt"), filepath.Join(folder, "tls.crt")); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, c); got != "second" {
		t.Errorf("whole again: %s is shown", got)
	}
}
