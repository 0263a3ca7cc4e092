package ondemand

import (
	"encoding/base64"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"carrick/cluster/masked"
)

func TestRegistryFileThereAndBack(t *testing.T) {
	for _, l := range []registryLogin{
		{"harbor.example.org:8443", "robot$ood+pull", masked.New(strings.Repeat("long", 60))},
		{"ghcr.io", `a"b\c'$(id)`, masked.New("p:w:\"\\ \u2028<>&ß")},
		{"docker.io", "user", masked.New("-")},
	} {
		data, err := encodeRegistry(l)
		if err != nil {
			t.Fatalf("%s: %v", l.Host, err)
		}
		got, err := decodeRegistry([]byte(data.Reveal()))
		if err != nil || len(got) != 1 || got[0].Host != registryKey(l.Host) || got[0].User != l.User ||
			got[0].Password != l.Password {
			t.Errorf("%s: got %+v, %v", l.Host, got, err)
		}
		for i, line := range strings.Split(data.Reveal(), "\n") {
			if strings.Contains(line, `"auth":`) && !strings.HasSuffix(line, `"`) {
				t.Errorf("%s: line %d goes on in the next", l.Host, i+1)
			}
		}
	}
}

func TestRegistryFileRefuses(t *testing.T) {
	for what, l := range map[string]registryLogin{
		"registry.host":                      {"https://ghcr.io", "u", masked.New("p")},
		"registry.user: it contains a colon": {"ghcr.io", "u:v", masked.New("p")},
		"registry.user: it contains a line":  {"ghcr.io", "u\nv", masked.New("p")},
		"registry.user: it is empty":         {"ghcr.io", "", masked.New("p")},
		"registry.password: it contains":     {"ghcr.io", "u", masked.New("hunter2\n")},
		"registry.password: it is empty":     {"ghcr.io", "u", masked.Value{}},
	} {
		_, err := encodeRegistry(l)
		if err == nil || !strings.HasPrefix(err.Error(), what) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// TestPublishedRegistryFile runs the published page's commands with a password so long that base64 wraps it.
func TestPublishedRegistryFile(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `AUTH=$(printf %s "robot:$1" | base64)
cat <<EOF
{
  "auths": {
    "harbor.example.org": {
      "auth": "${AUTH}"
    }
  }
}
EOF`, "sh", strings.Repeat("p", 80)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, err = decodeRegistry(out); !errors.Is(err, errWrapped) || !strings.HasPrefix(err.Error(), "line 4:") {
		t.Errorf("got %v of:\n%s", err, out)
	}
}

func TestRegistryFilesOfOthers(t *testing.T) {
	auth := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, c := range map[string]struct{ file, want string }{
		"empty":               {"", "line 1: not valid JSON"},
		"no JSON":             {"auths:\n  ghcr.io: {}\n", "line 1: not valid JSON"},
		"cut off":             {"{\n\"auths\":\n", "line 2: not valid JSON"},
		"another shape":       {`{"auths": []}`, "Docker's config.json"},
		"no registry":         {`{"credsStore": "x"}`, `no registry under "auths"`},
		"without a password":  {`{"auths": {"ghcr.io": {}}}`, `auths "ghcr.io": no user and password`},
		"not base64":          {`{"auths": {"ghcr.io": {"auth": "hunter2 hunter2"}}}`, "auth is not base64"},
		"escaped line ends":   {`{"auths": {"ghcr.io": {"auth": "aHVudGVyMjpo\nYXo="}}}`, "several lines"},
		"no colon":            {`{"auths": {"ghcr.io": {"auth": "` + auth("hunter2") + `"}}}`, "not USER:PASSWORD"},
		"echo without -n":     {`{"auths": {"ghcr.io": {"auth": "` + auth("u:hunter2\n") + `"}}}`, "which echo adds without -n"},
		"something behind it": {`{"auths": {"ghcr.io": {"auth": "` + auth("u:hunter2") + `"}}} {}`, "line 1: not valid JSON"},
		"a hostile name":      {`{"auths": {"\u001b[2J": {"auth": "x"}}}`, "auth is not base64"},
	} {
		_, err := decodeRegistry([]byte(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") ||
			strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	got, err := decodeRegistry(
		[]byte(`{"auths": {"b": {"auth": "` + auth("u:p:q") + `"}, "a": {"username": "u", "password": "p"}}, "x": 1}`),
	)
	if err != nil || len(got) != 2 || got[0].Host != "a" || got[1].Password.Reveal() != "p:q" {
		t.Errorf("got %+v, %v", got, err)
	}
}
