package podfiles

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestProjectFollowsItsSource(t *testing.T) {
	at := t.TempDir()
	if err := Project(at, nil); err != nil || !Same(at, nil) {
		t.Errorf("a volume without files: %v", err)
	}
	if err := os.WriteFile(filepath.Join(at, "own"), []byte("of another mount"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		situation string
		files     map[string][]byte
		names     []string
	}{
		{
			"two keys and a path",
			map[string][]byte{"a": []byte("1"), "b": []byte("2"), "c/d": []byte("3")},
			[]string{"..data", "a", "b", "c", "own"},
		},
		{"a key changes and two are removed", map[string][]byte{"a": []byte("4")}, []string{"..data", "a", "own"}},
		{"all keys are removed", nil, []string{"..data", "own"}},
	} {
		if Same(at, c.files) && c.files != nil {
			t.Errorf("%s: nothing to write", c.situation)
		}
		if err := Project(at, c.files); err != nil {
			t.Fatalf("%s: %v", c.situation, err)
		}
		if !Same(at, c.files) {
			t.Errorf("%s: the files differ", c.situation)
		}
		entries, err := os.ReadDir(at)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			if e.IsDir() { // the current files
				continue
			}
			names = append(names, e.Name())
		}
		if len(entries) != len(c.names)+1 || !slices.Equal(names, c.names) {
			t.Errorf("%s: %v", c.situation, entries)
		}
	}
}

func TestVolume(t *testing.T) {
	client := fake.NewClientset(
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "cm"}, Data: map[string]string{"text": "t"},
			BinaryData: map[string][]byte{"binary": {0xff}},
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "tls"}, Data: map[string][]byte{"tls.crt": []byte("c")},
		},
	)
	yes := true
	items := []corev1.KeyToPath{{Key: "none", Path: "n"}, {Key: "tls.crt", Path: "certs/c"}}
	secret := func(name string, items []corev1.KeyToPath, optional *bool) corev1.Volume {
		return corev1.Volume{
			VolumeSource: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: name, Items: items, Optional: optional},
			},
		}
	}
	projected := func(optional *bool) corev1.Volume {
		return corev1.Volume{
			VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{
					Secret: &corev1.SecretProjection{
						LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Optional: optional,
					},
				},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}},
			}}},
		}
	}
	configMap := func(name string, items []corev1.KeyToPath) corev1.Volume {
		return corev1.Volume{
			VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items,
				},
			},
		}
	}
	for _, c := range []struct {
		situation string
		volume    corev1.Volume
		names     []string
		fails     string
	}{
		{"a ConfigMap", configMap("cm", nil), []string{"binary", "text"}, ""},
		{"a ConfigMap that does not exist", configMap("none", nil), nil, `configmap "none" not found`},
		{"a key that it lacks", configMap("cm", items), nil, "configmap references non-existent config key: none"},
		{"a Secret", secret("tls", nil, nil), []string{"tls.crt"}, ""},
		{"a Secret that does not exist", secret("none", nil, nil), nil, `secret "none" not found`},
		{"an optional one", secret("none", nil, &yes), nil, ""},
		{"a key that it lacks", secret("tls", items, nil), nil, "references non-existent secret key: none"},
		{"an optional key", secret("tls", items, &yes), []string{"certs/c"}, ""},
		{"a source that does not exist", projected(nil), nil, `secret "none" not found`},
		{"an optional source", projected(&yes), []string{"binary", "text"}, ""},
		{"a kind that is not played", corev1.Volume{}, nil, ""},
	} {
		files, err := Volume(t.Context(), client, "x", c.volume)
		var names []string
		for name := range files {
			names = append(names, name)
		}
		slices.Sort(names)
		if !slices.Equal(names, c.names) {
			t.Errorf("%s: %v", c.situation, names)
		}
		if c.fails == "" && err != nil || c.fails != "" && (err == nil || err.Error() != c.fails ||
			!errors.Is(err, ErrWaits)) {
			t.Errorf("%s: %v, want %q", c.situation, err, c.fails)
		}
	}
}
