package cluster_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"carrick/cluster"
	"carrick/cluster/masked"
	"carrick/cluster/tracked"
)

var secretValues = map[string]string{"token": "correct-horse", "ca.crt": "battery-staple"}

func putSecret(api *fakeAPI) {
	encoded := map[string]any{}
	for key, value := range secretValues {
		encoded[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	applied, _ := json.Marshal(encoded)
	api.put(secretsGVR, "a", "s", map[string]any{
		"data": encoded, "type": "Opaque",
		"annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": string(applied), "kept": "yes"},
	})
}

// leaks fails the test if a text contains a secret value, plain or encoded.
func leaks(t *testing.T, where, text string) {
	t.Helper()
	for _, value := range secretValues {
		for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value))} {
			if strings.Contains(text, form) {
				t.Errorf("%s shows %q: %s", where, form, text)
			}
		}
	}
}

func TestASecretIsHiddenUnlessAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		putSecret(api)
		c := api.open(cluster.Options{})
		object, err := c.Get(t.Context(), secretsGVR, "a", "s")
		if err != nil {
			t.Fatal(err)
		}
		list, err := c.List(t.Context(), secretsGVR, "a", cluster.Selector{})
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		for _, o := range append(list, object) {
			raw, _ := json.Marshal(o)
			leaks(t, "the store", string(raw))
			if got := o.Object["data"].(map[string]any)["token"]; got != masked.New("correct-horse").Hash()+" (13 bytes)" {
				t.Errorf("token is %q", got)
			}
			if len(o.GetManagedFields()) != 0 || o.GetAnnotations()["kept"] != "yes" {
				t.Errorf("metadata is %v", o.Object["metadata"])
			}
		}
		s, err := c.Secret(t.Context(), "a", "s", "token", "none")
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := json.Marshal(s)
		leaks(t, "the secret", string(raw)+fmt.Sprintf("%+v %#v", s, *s))
		if len(s.Data) != 1 || s.Data["token"].Reveal() != "correct-horse" || s.Keys["ca.crt"] != 14 || len(s.Keys) != 2 ||
			s.Type != "Opaque" {
			t.Errorf("got %+v", s)
		}
	})
}

func TestReadsOfOneSecretShareOneWatch(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		putSecret(api)
		c := api.open(cluster.Options{})
		done := make(chan error)
		for key := range secretValues {
			go func() {
				s, err := c.Secret(t.Context(), "a", "s", key)
				if err == nil && s.Data[key].Reveal() != secretValues[key] {
					err = fmt.Errorf("%s is wrong", key)
				}
				done <- err
			}()
		}
		for range secretValues {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if got := api.requests(); len(got) > 2 {
			t.Errorf("asked %q", got)
		}
	})
}

func TestAKeyThatIsWantedLaterIsReadAgain(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		putSecret(api)
		c := api.open(cluster.Options{})
		ctx, trace := tracked.WithTrace(t.Context())
		if _, err := c.Get(ctx, secretsGVR, "a", "s"); err != nil {
			t.Fatal(err)
		}
		s, err := c.Secret(t.Context(), "a", "s", "ca.crt")
		if err != nil || s.Data["ca.crt"].Reveal() != "battery-staple" {
			t.Errorf("got %+v, %v", s, err)
		}
		bounded, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_ = trace.Wait(bounded)
		if got := api.requests(); len(got) != 2 {
			t.Errorf("asked %q", got)
		}
	})
}

func TestAMaskedValueIsNeverShown(t *testing.T) {
	m := masked.New("correct-horse")
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", m, "in", struct{ M masked.Value }{m})
	asJSON, _ := json.Marshal(map[string]any{"m": m, "p": &m})
	asYAML, _ := yaml.Marshal(map[string]any{"m": m})
	text, _ := m.MarshalText()
	for where, shown := range map[string]string{
		"log": log.String(), "JSON": string(asJSON), "YAML": string(asYAML), "text": string(text),
		"formats": fmt.Sprintf("%v %+v %#v %s %q %x %d %v", m, m, m, m, m, m, m, struct{ M *masked.Value }{&m}),
		"fields": fmt.Sprintf(
			"%v %+v %#v (hidden)", struct{ m masked.Value }{m}, struct{ m *masked.Value }{&m},
			struct{ m map[string]masked.Value }{map[string]masked.Value{"k": m}},
		),
		"String": m.String() + m.GoString(), "hash": m.Hash(),
	} {
		leaks(t, where, shown)
		if where != "hash" && !strings.Contains(shown, "(hidden)") && where != "formats" {
			t.Errorf("%s does not say that it is hidden: %s", where, shown)
		}
	}
	if m != masked.New("correct-"+strings.Repeat("horse", 1)) || m == masked.New("other") ||
		masked.New("") != (masked.Value{}) {
		t.Error("masked values can't be compared")
	}
	if m.IsZero() || !masked.New("").IsZero() || m.Reveal() != "correct-horse" || len(m.Hash()) != len("sha256:")+12 {
		t.Error("a masked value is not what it was made of")
	}
}
