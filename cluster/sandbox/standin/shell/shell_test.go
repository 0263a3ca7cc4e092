package shell

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func run(t *testing.T, folder, script string, environment ...string) (int32, string) {
	t.Helper()
	var out bytes.Buffer
	b := &Box{Mounts: map[string]string{"/mnt": folder}, Environment: environment, Host: "pod", Out: &out}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	code := b.Run(ctx, script)
	return code, out.String()
}

func TestAScriptReallyWritesAndReads(t *testing.T) {
	folder := t.TempDir()
	code, said := run(
		t, folder,
		"set -e\necho \"$OWN on $NODE\" > \"/mnt/$OWN\"\nfor i in $(seq 60); do [ -s \"/mnt/$OTHER\" ] && break; sleep "+
			"0.01; [ $i = 2 ] && echo b > /mnt/b; done\ncat /mnt/a /mnt/b; hostname",
		"OWN=a", "OTHER=b", "NODE=worker-1",
	)
	if code != 0 || said != "a on worker-1\nb\npod\n" {
		t.Errorf("%d: %s", code, said)
	}
	if data, err := os.ReadFile(filepath.Join(folder, "a")); err != nil || string(data) != "a on worker-1\n" {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

func TestNothingBesideTheVolumesIsInReach(t *testing.T) {
	folder, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{
		"cat " + secret, "cat /mnt/../" + secret, "cat /mnt/link/secret", "cat < " + secret, "echo x > " + secret,
		"echo x > /mnt/link/secret",
		"rm " + secret, "rm /mnt/link/secret", "touch " + outside + "/new", ". " + secret, "ls " + outside,
		"cd " + outside + " && cat secret",
		"/bin/cat " + secret + " /etc/hosts", "exec /bin/sh -c true && cat " + secret, "wget http://127.0.0.1",
		"test -e " + secret,
	} {
		code, said := run(t, folder, script)
		if code == 0 || strings.Contains(said, "secret\n") && !strings.Contains(said, ":") {
			t.Errorf("%s: %d, %s", script, code, said)
		}
	}
	if data, err := os.ReadFile(secret); err != nil || string(data) != "secret" {
		t.Errorf("it is %q now, %v", data, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("there is %v, %v", entries, err)
	}
}

func TestAScriptThatDoesNotEndIsEnded(t *testing.T) {
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if code := (&Box{Out: &out}).Run(ctx, "while true; do sleep 1; done"); code == 0 {
		t.Errorf("it ended well: %s", out.String())
	}
}

func TestWhatIsAScript(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"sh", "-c", "x"}, "x"},
		{[]string{"/bin/sh", "-ec", "x"}, "set -e\nx"},
		{[]string{"python", "-c", "x"}, ""},
		{[]string{"sh", "x"}, ""},
		{nil, ""},
	} {
		if got, ok := Script(c.words); got != c.want || ok != (c.want != "") {
			t.Errorf("%v: %q", c.words, got)
		}
	}
}
