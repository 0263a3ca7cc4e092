package facts_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	"golang.org/x/crypto/ssh"

	"carrick/steps/facts"
)

var taken = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func file() *facts.File {
	return &facts.File{
		APIVersion: facts.Version, Kind: facts.Kind, Guide: "liqo", Link: "milan-rome", Side: "remote", Role: "provider",
		Cluster: "b1", Taken: taken, Until: taken.Add(24 * time.Hour),
		Facts: map[string]any{
			"cluster-id": "rome", "pod-cidrs": []string{"10.42.0.0/16"}, "gateway": map[string]any{"port": 51840},
		},
		Answers: map[string]any{"network.node-port": 30742},
		Absent:  map[string]string{"connection": "there is none yet"},
		Checks:  map[string]facts.Told{"gateway-up": {Status: "pass", Found: "it runs"}},
	}
}

// testKey returns a new key on each call, with its private part.
func testKey(t testing.TB) (*facts.Key, any) {
	t.Helper()
	key, text, err := facts.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	private, err := ssh.ParseRawPrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key, private
}

func encode(t *testing.T, f *facts.File, key *facts.Key) []byte {
	t.Helper()
	data, err := f.Encode(key)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAFileIsReadAsItWasWritten(t *testing.T) {
	key, _ := testKey(t)
	data := encode(t, file(), key)
	f, err := facts.Decode(data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if f.Facts["cluster-id"] != "rome" || f.Checks["gateway-up"].Found != "it runs" || !f.Taken.Equal(taken) {
		t.Errorf("%+v", f)
	}
	if again := encode(t, f, key); !bytes.Equal(again, data) {
		t.Errorf("written again it is another file:\n%s\n%s", data, again)
	}
	crlf := bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
	if mailed, err := facts.Decode(crlf); err != nil || mailed.Facts["cluster-id"] != "rome" ||
		mailed.Signer != key.Fingerprint() {
		t.Errorf("with the line ends of Windows: %v", err)
	}
	if f.Signer != key.Fingerprint() || !strings.HasPrefix(f.Signer, "SHA256:") {
		t.Errorf("signer %q, want %q", f.Signer, key.Fingerprint())
	}
}

func TestWhatIsRefused(t *testing.T) {
	key, _ := testKey(t)
	data := string(encode(t, file(), key))
	for name, text := range map[string]string{
		"a value that was changed": strings.Replace(data, "cluster-id: rome", "cluster-id: oslo", 1),
		"a longer life":            strings.Replace(data, "2026-03-02", "2027-03-02", 1),
		"a verdict that was added": strings.Replace(data, "checks:\n", "checks:\n    tunnel: {status: pass}\n", 1),
	} {
		if text == data {
			t.Fatalf("%s: nothing was changed", name)
		}
		if _, err := facts.Decode([]byte(text)); !errors.Is(err, facts.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"a half of it":       data[:len(data)/2],
		"a link file":        "apiVersion: carrick/v1alpha1\nkind: Link\n",
		"nothing":            "",
		"no YAML":            "\t{",
		"an alias":           strings.Replace(data, "guide: liqo", "guide: &g liqo", 1),
		"a deep value":       data + "facts: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n",
		"an unknown key":     "more: 1\n" + data,
		"an unknown version": strings.Replace(data, "carrick/v1alpha1", "carrick/v9", 1),
		"too much":           data + strings.Repeat("#", facts.Max),
	} {
		if _, err := facts.Decode([]byte(text)); err == nil {
			t.Errorf("%s is taken for a file of facts", name)
		}
	}
}

func TestAForeignOrStaleFileDoesNotFit(t *testing.T) {
	good := facts.Expects{
		Guide: "liqo", Link: "milan-rome", Side: "remote", Role: "provider", Cluster: "a1", Now: taken.Add(time.Hour),
	}
	for _, newest := range []time.Time{{}, taken.Add(-time.Second), taken} {
		good.Newest = newest
		if err := file().Fits(good); err != nil {
			t.Fatal(err)
		}
	}
	for want, change := range map[string]func(*facts.Expects){
		"for guide liqo":      func(x *facts.Expects) { x.Guide = "renku" },
		"for link milan-rome": func(x *facts.Expects) { x.Link = "oslo-rome" },
		"from the provider":   func(x *facts.Expects) { x.Side, x.Role = "local", "consumer" },
		"same cluster":        func(x *facts.Expects) { x.Cluster = "b1" },
		"has expired":         func(x *facts.Expects) { x.Now = taken.Add(25 * time.Hour) },
		"is older than":       func(x *facts.Expects) { x.Newest = taken.Add(time.Second) },
		"clocks is wrong":     func(x *facts.Expects) { x.Now = taken.Add(-time.Hour) },
	} {
		x := good
		change(&x)
		if err := file().Fits(x); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestALongLifeIsRefused(t *testing.T) {
	x := facts.Expects{
		Guide: "liqo", Link: "milan-rome", Side: "remote", Role: "provider", Cluster: "a1", Now: taken.Add(time.Hour),
	}
	f := file()
	if f.Until = taken.Add(facts.MaxLife); f.Fits(x) != nil {
		t.Error(f.Fits(x))
	}
	f.Until = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := f.Fits(x); err == nil || !strings.Contains(err.Error(), "30 days") {
		t.Errorf("until 2099: %v", err)
	}
}

func TestOnlyTheOneForWhomItIsSealedReadsASecret(t *testing.T) {
	mine, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	to, err := facts.For([]string{mine.Recipient().String()})
	if err != nil {
		t.Fatal(err)
	}
	key, _ := testKey(t)
	f := file()
	if err := f.Seal(map[string]string{"token": "sesame-7"}, to, key); err != nil {
		t.Fatal(err)
	}
	data := encode(t, f, key)
	if bytes.Contains(data, []byte("sesame")) {
		t.Fatal("the secret stands in the open")
	}
	read := func() *facts.File {
		f, err := facts.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f = read()
	if err := f.Unseal(facts.Keys{other}); !errors.Is(err, facts.ErrSealed) || f.Opened() {
		t.Errorf("another's key: %v", err)
	}
	if err := f.Unseal(nil); !errors.Is(err, facts.ErrSealed) {
		t.Errorf("no key: %v", err)
	}
	if err := f.Unseal(facts.Keys{mine}); err != nil {
		t.Fatal(err)
	}
	if v, ok := f.Secret("token"); !ok || v != "sesame-7" {
		t.Errorf("the secret is %q", v)
	}
	// Who can't open the seal can still put it into a file that they sign, next to an address of theirs.
	thief, _ := testKey(t)
	f = read()
	f.Facts["cluster-id"] = "oslo"
	f, err = facts.Decode(encode(t, f, thief))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Unseal(facts.Keys{mine}); err == nil || !strings.Contains(err.Error(), "signed with another key") {
		t.Errorf("a seal out of another's file: %v", err)
	}
	if _, ok := f.Secret("token"); ok {
		t.Error("the secret can be read")
	}
}

// sealed returns a file with a secret that was sealed with a passphrase, at a work factor of 10. It states the given
// work factor.
func sealed(t *testing.T, phrase, factor string) *facts.File {
	t.Helper()
	to, err := age.NewScryptRecipient(phrase)
	if err != nil {
		t.Fatal(err)
	}
	to.SetWorkFactor(10) // scrypt's usual factor takes a second
	var plain, out bytes.Buffer
	w, err := age.Encrypt(&plain, to)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write([]byte(`{"token":"t"}`))
	armored := armor.NewWriter(&out)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = armored.Write(bytes.Replace(plain.Bytes(), []byte(" 10\n"), []byte(" "+factor+"\n"), 1))
	if err := errors.Join(err, armored.Close()); err != nil {
		t.Fatal(err)
	}
	f := file()
	f.Sealed = &facts.Sealed{For: []string{facts.ByPassphrase}, Names: []string{"token"}, Age: out.String()}
	return f
}

// The writer of a file chooses how much memory and time its reader would spend on a passphrase, so an expensive work
// factor is rejected.
func TestAnExpensivePassphraseIsRefused(t *testing.T) {
	right, err := facts.Passphrase("correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	f := sealed(t, "correct horse battery", "19")
	if err := f.Unseal(right); err == nil || !strings.Contains(err.Error(), "work factor too large") {
		t.Errorf("%v", err)
	}
}

func TestAWrongPassphrase(t *testing.T) {
	for phrase, want := range map[string]error{"correct horse battery": nil, "wrong horse battery": facts.ErrSealed} {
		keys, err := facts.Passphrase(phrase)
		if err != nil {
			t.Fatal(err)
		}
		if err := sealed(t, "correct horse battery", "10").Unseal(keys); !errors.Is(err, want) {
			t.Errorf("%s: %v", phrase, err)
		}
	}
}

func TestAPassphraseSealsToo(t *testing.T) {
	to, err := facts.ForPassphrase("correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	f := file()
	key, _ := testKey(t)
	if err := f.Seal(map[string]string{"token": "t"}, to, key); err != nil {
		t.Fatal(err)
	}
	if f, err = facts.Decode(encode(t, f, key)); err != nil {
		t.Fatal(err)
	}
	right, _ := facts.Passphrase("correct horse battery")
	if err := f.Unseal(right); err != nil {
		t.Error(err)
	}
}

func TestWhoIsNoRecipient(t *testing.T) {
	for _, text := range []string{"milan", "age1nonsense", "ssh-ed25519 nonsense", ""} {
		if _, err := facts.For([]string{text}); err == nil {
			t.Errorf("%q is taken for a recipient", text)
		}
	}
	for _, text := range []string{"", "AGE-SECRET-KEY-1NONSENSE", "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n"} {
		if _, err := facts.Identities([]byte(text)); err == nil {
			t.Errorf("%q is taken for a key", text)
		}
	}
}
