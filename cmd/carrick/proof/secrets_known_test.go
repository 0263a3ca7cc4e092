package proof

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"carrick/cluster/clustertest/hostile"
	"carrick/steps"
)

// plantedPassword is a value in every Helm release, like a database password.
const plantedPassword = "pl4nted-Passw0rd/of+a-release=zQ7"

// storedSecret is a Secret as kubectl prints it.
type storedSecret struct {
	Metadata struct {
		Name, Namespace     string
		Labels, Annotations map[string]string
	}
	Type string
	Data map[string][]byte
}

func (s site) stored(side steps.Side) []storedSecret {
	s.Helper()
	var list struct{ Items []storedSecret }
	if err := json.Unmarshal(
		[]byte(s.box.Run(s, string(side), "", "get", "secrets", "-A", "-o", "json")), &list,
	); err != nil {
		s.Fatal(err)
	}
	return list.Items
}

// plant creates another user's Secrets in both clusters, because some guides have no Secrets of their own. It adds a
// password to the values of every release, and the annotation of kubectl apply to every Secret. It returns a seeker
// that knows all secrets so far.
func (s site) plant() *hostile.Seeker {
	s.box.Bystanders(s)
	out := &hostile.Seeker{}
	s.add(out, "planted password", plantedPassword)
	for key, v := range s.answers {
		if q, _ := s.guide.Question(key); q.Secret {
			s.add(out, key, fmt.Sprint(v))
		}
	}
	for _, side := range steps.Sides {
		for _, secret := range s.stored(side) {
			if strings.HasPrefix(secret.Metadata.Namespace, "kube-") {
				continue
			}
			patch := map[string]any{"metadata": map[string]any{
				"annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": applied1(secret)},
			}}
			if raw := secret.Data["release"]; secret.Type == "helm.sh/release.v1" && raw != nil {
				patch = map[string]any{"data": map[string]any{"release": s.withPassword(raw)}}
			}
			body, err := json.Marshal(patch)
			if err != nil {
				s.Fatal(err)
			}
			s.box.Run(
				s, string(side), "", "-n", secret.Metadata.Namespace, "patch", "secret", secret.Metadata.Name, "--type=merge", "-p",
				string(body),
			)
		}
		text, err := os.ReadFile(s.box.Kubeconfigs[string(side)])
		if err != nil {
			s.Fatal(err)
		}
		s.addKubeconfig(out, "the admin's kubeconfig of "+string(side), text)
	}
	s.collect(out, 1) // what a scenario has before it is applied may be little
	return out
}

func applied1(secret storedSecret) string {
	text, _ := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": secret.Metadata.Name}, "data": secret.Data,
	})
	return string(text)
}

// withPassword returns a stored release with the planted password among its values.
func (s site) withPassword(stored []byte) []byte {
	s.Helper()
	packed, err := base64.StdEncoding.DecodeString(string(stored))
	if err != nil {
		s.Fatal(err)
	}
	if bytes.HasPrefix(packed, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			s.Fatal(err)
		}
		if packed, err = io.ReadAll(z); err != nil {
			s.Fatal(err)
		}
	}
	var release map[string]any
	if err := json.Unmarshal(packed, &release); err != nil {
		s.Fatal(err)
	}
	config, _ := release["config"].(map[string]any)
	if config == nil {
		config = map[string]any{}
	}
	config["database"] = map[string]any{"password": plantedPassword}
	release["config"] = config
	text, err := json.Marshal(release)
	if err != nil {
		s.Fatal(err)
	}
	return []byte(base64.StdEncoding.EncodeToString(text))
}

// public matches keys of Secrets that hold public values.
var public = regexp.MustCompile(
	`(?i)^(namespace|.*\.crt|.*\.csr|public.*|.*(url|host|user|username|name|server|type|email|issuer|affinity|tolerations|selector|class|annotations|client_id|ca_certs).*)$`,
)

// collect adds the values of the Secrets in both clusters.
func (s site) collect(out *hostile.Seeker, least int) {
	s.Helper()
	n := 0
	for _, side := range steps.Sides {
		for _, secret := range s.stored(side) {
			for key, value := range secret.Data {
				name := fmt.Sprintf("%s/%s/%s %s", side, secret.Metadata.Namespace, secret.Metadata.Name, key)
				switch text := string(value); {
				case strings.Contains(text, "PRIVATE KEY"):
					s.add(out, name, text)
				case strings.Contains(text, "-----BEGIN"):
					continue
				case strings.Contains(text, "users:") && strings.Contains(text, "clusters:"):
					s.addKubeconfig(out, name, value)
				case public.MatchString(key), len(value) < 16:
					continue
				default:
					s.add(out, name, text)
				}
				n++
			}
		}
	}
	if n < least {
		s.Fatalf("%d secrets: this proves nothing", n)
	}
}

func (s site) add(out *hostile.Seeker, name, secret string) {
	s.Helper()
	if err := out.Add(name, secret); err != nil {
		s.Fatal(err)
	}
}

// addKubeconfig adds the secrets in a kubeconfig.
func (s site) addKubeconfig(out *hostile.Seeker, name string, text []byte) {
	s.Helper()
	var file struct {
		Users []struct {
			User struct {
				Token string `yaml:"token"`
				Key   string `yaml:"client-key-data"`
			} `yaml:"user"`
		} `yaml:"users"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		s.Fatal(err)
	}
	for _, u := range file.Users {
		if len(u.User.Token) >= 16 {
			s.add(out, name+" token", u.User.Token)
		}
		if key, err := base64.StdEncoding.DecodeString(u.User.Key); err == nil && len(key) > 0 {
			s.add(out, name+" key", string(key))
		}
	}
}
