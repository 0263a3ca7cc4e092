package facts_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/hiddeco/sshsig"
	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/ssh"

	"carrick/steps/facts"
)

// signedAs returns a text with a signature by a key in an SSH namespace.
func signedAs(t *testing.T, text []byte, private any, namespace string) []byte {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := sshsig.Sign(bytes.NewReader(text), signer, sshsig.HashSHA512, namespace)
	if err != nil {
		t.Fatal(err)
	}
	end, err := yaml.Marshal(map[string]string{"signature": string(sshsig.Armor(sig))})
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.Clone(text), end...)
}

func TestAnAlteredFileIsRefused(t *testing.T) {
	key, private := testKey(t)
	_, otherPrivate := testKey(t)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	to, err := facts.For([]string{mine.Recipient().String()})
	if err != nil {
		t.Fatal(err)
	}
	f := file()
	if err := f.Seal(map[string]string{"token": "sesame-7"}, to, key); err != nil {
		t.Fatal(err)
	}
	good := encode(t, f, key)
	text, end, _ := strings.Cut(string(good), "\nsignature:")
	text += "\n"
	other := signedAs(t, []byte(text), otherPrivate, facts.Namespace)
	_, otherEnd, _ := strings.Cut(string(other), "\nsignature:")

	again := file()
	if err := again.Seal(map[string]string{"token": "sesame-8"}, to, key); err != nil {
		t.Fatal(err)
	}

	for name, c := range map[string]struct {
		text string
		want error
	}{
		"as it was written":     {string(good), nil},
		"signed by another key": {string(other), nil}, // the caller compares the fingerprint
		"open part": {
			strings.Replace(string(good), "cluster-id: rome", "cluster-id: oslo", 1), facts.ErrSignature,
		},
		"verdict":               {strings.Replace(string(good), "status: pass", "status: fail", 1), facts.ErrSignature},
		"comment":               {strings.Replace(string(good), "# Facts", "# facts", 1), facts.ErrSignature},
		"seal":                  {strings.Replace(string(good), sealOf(f), sealOf(again), 1), facts.ErrSignature},
		"no seal":               {text[:strings.Index(text, "sealed:")] + "signature:" + end, facts.ErrSignature},
		"signature of another":  {strings.Replace(text, "rome", "oslo", 1) + "signature:" + otherEnd, facts.ErrSignature},
		"two signatures":        {string(good) + "signature:" + end, facts.ErrForm},
		"a key after it":        {string(good) + "link: oslo-rome\n", facts.ErrForm}, // twice in the file
		"a key that it lacks":   {string(good) + "unread: {name: no}\n", facts.ErrSignature},
		"a second document":     {string(good) + "---\nkind: Facts\n", facts.ErrSignature},
		"a signature that ends": {string(good[:len(good)-80]), facts.ErrSignature},
		"an empty signature":    {text + "signature: ''\n", facts.ErrSignature},
		"no signature":          {text, facts.ErrUnsigned},
		"wrong namespace":       {string(signedAs(t, []byte(text), private, "file")), facts.ErrSignature},
		"a key of another type": {string(signedAs(t, []byte(text), curve, facts.Namespace)), facts.ErrSignature},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want != nil && c.text == string(good) {
				t.Fatal("nothing was changed")
			}
			got, err := facts.Decode([]byte(c.text))
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err == nil && (got.Signer == key.Fingerprint()) != (name == "as it was written") {
				t.Errorf("the signer is %s; the key is %s", got.Signer, key.Fingerprint())
			}
		})
	}
}

// sealOf returns the second line of the armored secrets.
func sealOf(f *facts.File) string { return strings.Split(f.Sealed.Age, "\n")[1] }

// ssh-keygen verifies carrick's signatures.
func TestSSHKeygenVerifiesASignature(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("there is no ssh-keygen on this machine: install the package openssh-client")
	}
	key, _ := testKey(t)
	text, end, _ := bytes.Cut(encode(t, file(), key), []byte("\nsignature:"))
	var sig struct{ Signature string }
	if err := yaml.Unmarshal(append([]byte("signature:"), end...), &sig); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sig")
	if err := os.WriteFile(path, []byte(sig.Signature), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "ssh-keygen", "-Y", "check-novalidate", "-n", facts.Namespace, "-s", path)
	cmd.Stdin = bytes.NewReader(append(text, '\n'))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), key.Fingerprint()) {
		t.Errorf("%v: %s", err, out)
	}
}

func TestTheOwnKeyIsCreatedOnce(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	first, err := facts.OwnKey()
	if err != nil {
		t.Fatal(err)
	}
	again, err := facts.OwnKey()
	if err != nil || again.Fingerprint() != first.Fingerprint() {
		t.Errorf("another key: %v", err)
	}
	path := filepath.Join(dir, "carrick", "signing-key")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if list, _ := os.ReadDir(filepath.Dir(path)); len(list) != 1 {
		t.Errorf("left beside it: %v", list)
	}
	refused := func(want string) {
		t.Helper()
		if _, err := facts.OwnKey(); err == nil || !strings.Contains(err.Error(), path+": "+want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	refused("other users can read or change it")
	if err := errors.Join(
		os.Chmod(path, 0o600), os.Rename(path, path+".other"), os.Symlink(path+".other", path),
	); err != nil {
		t.Fatal(err)
	}
	refused("is not a regular file")
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("key"), 0o600)); err != nil {
		t.Fatal(err)
	}
	refused("it is not an SSH private key")
}

func TestWhichKeysSign(t *testing.T) {
	_, private := testKey(t)
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("correct horse"))
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ssh.MarshalPrivateKey(curve, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		data []byte
	}{
		{"is encrypted with a passphrase", pem.EncodeToMemory(locked)},
		{"type ecdsa-sha2-nistp256", pem.EncodeToMemory(other)},
		{"it is not an SSH private key", []byte("ssh-ed25519 AAAA")},
		{"it is not an SSH private key", nil},
	} {
		if _, err := facts.ParseKey(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
}
