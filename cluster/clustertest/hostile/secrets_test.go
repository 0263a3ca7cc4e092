package hostile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
)

const planted = "gK3-planted/secret+4711=zZ"

// Tests the Seeker itself: it must find a secret in every form.
func TestASecretThatIsThereIsFound(t *testing.T) {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	long := strings.Repeat("Ab3", 10) + planted + strings.Repeat("9xQ", 60) + "theEndOfIt-" + planted
	key := "-----BEGIN PRIVATE KEY-----\n" + b64(strings.Repeat(planted, 2))[:64] + "\n" + b64("x" + planted)[:20] +
		"\n-----END PRIVATE KEY-----\n"
	var s Seeker
	for name, secret := range map[string]string{"planted": planted, "long": long, "key": key} {
		if err := s.Add(name, secret); err != nil {
			t.Fatal(err)
		}
	}
	quoted, _ := json.Marshal(map[string]string{"a": key})
	for how, text := range map[string]string{
		"as it is": "x " + planted + " y", "in base64": b64(planted), "in base64 after one byte": b64("a" + planted + "b"),
		"in base64 after two": b64("ab" + planted),
		"in base64 of base64": b64(b64(planted)), "in base64 of base64 of a file": b64(b64("token: " + planted + "\n")),
		"shifted twice":         b64("a" + b64("ab"+planted)),
		"in hex":                hex.EncodeToString([]byte(planted)),
		"in URL base64":         base64.URLEncoding.EncodeToString([]byte("??" + planted)),
		"wrapped by a screen":   "│ " + planted[:11] + "   │\n│ " + planted[11:] + " │",
		"coloured":              planted[:9] + "\x1b[31m" + planted[9:] + "\x1b[0m",
		"the end of a long one": long[len(long)-40:], "a key as JSON": string(quoted),
		"a key's line": strings.Split(key, "\n")[1],
	} {
		if found := s.Find([]byte(text)); len(found) == 0 {
			t.Errorf("%s it is not found: %q", how, text)
		}
	}
	for _, text := range []string{
		"", "nothing", strings.Repeat("Ab3", 10), "-----BEGIN PRIVATE KEY-----", b64("another secret of that length"),
		"(hidden)",
	} {
		if found := s.Find([]byte(text)); len(found) > 0 {
			t.Errorf("%q is taken for %v", text, found)
		}
	}
	if s.Add("short", "admin") == nil {
		t.Error("a secret of five characters was taken")
	}
}

// The public key in a certificate request is not a secret, at any offset. Each line of the private key is found.
func TestAPublicKeyIsNoSecret(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	private := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	var s Seeker
	if err := s.Add("key", private); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		request, err := x509.CreateCertificateRequest(
			rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: strings.Repeat("n", 1+i)}}, key,
		)
		if err != nil {
			t.Fatal(err)
		}
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})
		if found := s.Find(text); len(found) > 0 {
			t.Errorf("a request for it is taken for %v:\n%s", found, text)
		}
	}
	for _, line := range strings.Split(private, "\n")[1:3] {
		if len(s.Find([]byte(line))) == 0 {
			t.Errorf("not found: %s", line)
		}
	}
}

func TestWhatNoOutputMayHold(t *testing.T) {
	for name, text := range Texts {
		bad := name != "a long line" && name != "looks like markup" && name != "a line of its own"
		if name == "a line of its own" {
			bad = true // \r
		}
		if (Unfit(text) != "") != bad {
			t.Errorf("%s: %q", name, Unfit(text))
		}
	}
	if Unfit("plain ünïcode 漢字 🙂\n\tx \ufffd") != "" {
		t.Error("a plain text is refused")
	}
	if Unfit(All()) == "" {
		t.Error("all of it is fit")
	}
}
