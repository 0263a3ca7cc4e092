package facts_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"filippo.io/age"

	"carrick/steps/facts"
)

// A facts file is accepted only if it is unchanged. Writing and reading an accepted file gives the same content. The
// error for a rejected file is one clean line.
func FuzzDecode(f *testing.F) {
	key, _ := testKey(f)
	good, err := file().Encode(key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add(bytes.Replace(good, []byte("rome"), []byte("oslo"), 1))
	for _, text := range []string{
		"", "\t{", "kind: Facts\n", "apiVersion: carrick/v1alpha1\nkind: Facts\ndigest: ''\n",
		"apiVersion: \"\\e]0;x\\a\"\nkind: Facts\n",
		"a: &a [*a]", "? {a: b}\n: c\n", "apiVersion: carrick/v1alpha1\nkind: Facts\n\"\\e[31m\": 1\n",
		"apiVersion: carrick/v1alpha1\nkind: Facts\nfacts: {a: !!binary aGVsbG8=, b: .nan}\n",
		"apiVersion: carrick/v1alpha1\nkind: Facts\ntaken: 2026-13-45\n", "kind: Facts\n---\nkind: Facts\n",
		"kind: Facts\napiVersion: " + strings.Repeat("G", 3000) + "\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := facts.Decode(data)
		if err != nil {
			fitsALine(t, err)
			return
		}
		written, err := got.Encode(key)
		if err != nil {
			t.Fatalf("what was read can't be written: %v", err)
		}
		again, err := facts.Decode(written)
		if err != nil {
			t.Fatalf("what was written can't be read: %v\n%s", err, written)
		}
		if got.Signer = key.Fingerprint(); !reflect.DeepEqual(again, got) {
			t.Errorf("%+v became %+v", got, again)
		}
	})
}

// fitsALine fails the test if an error is too long or contains terminal control characters.
func fitsALine(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if len(text) > 2000 {
		t.Errorf("an error of %d bytes", len(text))
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }); i >= 0 {
		t.Errorf("an error with a control character: %q", text)
	}
}

// Only a file of this link, this side and this time fits, whatever the file says.
func FuzzFits(f *testing.F) {
	f.Add("liqo", "milan-rome", "remote", "provider", "b1", "token", int64(0), int64(3600))
	f.Add("renku", "milan-rome", "remote", "\x1b[31mprovider", "a1", "token", int64(-1), int64(1))
	f.Add("", "", "", "", "", "", int64(1)<<40, int64(-1))
	f.Fuzz(func(t *testing.T, guide, link, side, role, cluster, fact string, age, good int64) {
		now := taken
		age, good = age%(1<<31), good%(1<<31)
		file := &facts.File{
			Guide: guide, Link: link, Side: side, Role: role, Cluster: cluster, Facts: map[string]any{fact: 1},
		}
		file.Taken = now.Add(-time.Duration(age) * time.Second)
		file.Until = file.Taken.Add(time.Duration(good) * time.Second)
		x := facts.Expects{
			Guide: "liqo", Link: "milan-rome", Side: "remote", Role: "provider", Cluster: "a1", Secrets: []string{"token"},
			Now: now,
		}
		err := file.Fits(x)
		right := guide == "liqo" && link == "milan-rome" && side == "remote" && cluster != "a1" && fact != "token" &&
			!now.After(file.Until) && file.Until.Sub(file.Taken) <= facts.MaxLife && !file.Taken.After(now.Add(5*time.Minute))
		if (err == nil) != right {
			t.Errorf("fits: %v, want %v: %+v", err, right, file)
		}
		if err != nil {
			fitsALine(t, err)
		}
	})
}

// Secrets that carrick did not encrypt are not decrypted, and the error fits on one line.
func FuzzUnseal(f *testing.F) {
	mine, err := age.GenerateX25519Identity()
	if err != nil {
		f.Fatal(err)
	}
	to, err := facts.For([]string{mine.Recipient().String()})
	if err != nil {
		f.Fatal(err)
	}
	sealed := file()
	key, _ := testKey(f)
	if err := sealed.Seal(map[string]string{"token": "sesame-7"}, to, key); err != nil {
		f.Fatal(err)
	}
	good := sealed.Sealed.Age
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add(strings.Replace(good, "A", "B", 1))
	f.Add("-----BEGIN AGE ENCRYPTED FILE-----\n\x1b[31m\n-----END AGE ENCRYPTED FILE-----\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, seal string) {
		one := file()
		one.Signer = key.Fingerprint()
		one.Sealed = &facts.Sealed{For: to.Names, Names: []string{"token"}, Age: seal}
		if err := one.Unseal(facts.Keys{mine}); err != nil {
			fitsALine(t, err)
			if _, ok := one.Secret("token"); ok || one.Opened() {
				t.Error("a seal that was refused counts as opened")
			}
			return
		}
		if v, ok := one.Secret("token"); ok && v != "sesame-7" {
			t.Errorf("another secret comes out: %q", v)
		}
	})
}
