package check

import "testing"

func TestSplitImage(t *testing.T) {
	t.Parallel()
	for image, want := range map[string][2]string{
		"nginx":                            {"nginx", ""},
		"docker.io/a/b:1.2":                {"docker.io/a/b", "1.2"},
		"registry.example.org:5000/a":      {"registry.example.org:5000/a", ""},
		"registry.example.org:5000/a:1":    {"registry.example.org:5000/a", "1"},
		"docker.io/a/b:1.2@sha256:0123abc": {"docker.io/a/b", "1.2"},
		"docker.io/a/b@sha256:0123abc":     {"docker.io/a/b", ""},
	} {
		if repository, tag := SplitImage(image); repository != want[0] || tag != want[1] {
			t.Errorf("%s is split into %q and %q", image, repository, tag)
		}
	}
}
