package hostile

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
)

const planted = "gK3-planted/secret+4711=zZ"

// A test of the test: a secret that is there is found, in whatever form.
func TestASecretThatIsThereIsFound(t *testing.T) {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	long := strings.Repeat("Ab3", 10) + planted + strings.Repeat("9xQ", 60) + "theEndOfIt-" + planted
	key := "-----BEGIN PRIVATE KEY-----\n" + b64(strings.Repeat(planted, 2))[:64] + "\n" + b64("x" + planted)[:20] + "\n-----END PRIVATE KEY-----\n"
	var s Seeker
	for name, secret := range map[string]string{"planted": planted, "long": long, "key": key} {
		if err := s.Add(name, secret); err != nil {
			t.Fatal(err)
		}
	}
	quoted, _ := json.Marshal(map[string]string{"a": key})
	for how, text := range map[string]string{
		"as it is": "x " + planted + " y", "in base64": b64(planted), "in base64 after one byte": b64("a" + planted + "b"), "in base64 after two": b64("ab" + planted),
		"in base64 of base64": b64(b64(planted)), "in base64 of base64 of a file": b64(b64("token: " + planted + "\n")), "shifted twice": b64("a" + b64("ab"+planted)),
		"in hex": hex.EncodeToString([]byte(planted)), "in URL base64": base64.URLEncoding.EncodeToString([]byte("??" + planted)),
		"wrapped by a screen": "│ " + planted[:11] + "   │\n│ " + planted[11:] + " │", "coloured": planted[:9] + "\x1b[31m" + planted[9:] + "\x1b[0m",
		"the end of a long one": long[len(long)-40:], "a key as JSON": string(quoted), "a key's line": strings.Split(key, "\n")[1],
	} {
		if found := s.Find([]byte(text)); len(found) == 0 {
			t.Errorf("%s it is not found: %q", how, text)
		}
	}
	for _, text := range []string{"", "nothing", strings.Repeat("Ab3", 10), "-----BEGIN PRIVATE KEY-----", b64("another secret of that length"), "(hidden)"} {
		if found := s.Find([]byte(text)); len(found) > 0 {
			t.Errorf("%q is taken for %v", text, found)
		}
	}
	if s.Add("short", "admin") == nil {
		t.Error("a secret of five characters was taken")
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
