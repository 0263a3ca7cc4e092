package stepstest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
)

// state is one txtar file, merged over its base.
type state struct {
	name    string
	path    string
	archive *txtar.Archive
	base    *state
	objects map[steps.Side][]*unstructured.Unstructured
	answers map[string]any
	denied  []string
	server  map[steps.Side][]string // words such as "down"
	logs    map[string]string       // pod logs by namespace/name or namespace/name/container
	web     map[string][]webAnswer  // by "METHOD /path"
	machine *machine                // the side that is a host
	want    string

	admission map[steps.Side][]admission // rules for dry runs
}

// section returns the content of the named section. If the section does not exist, the bool is false.
func (s *state) section(name string) (string, bool) {
	for _, f := range s.archive.Files {
		if f.Name == name {
			return string(f.Data), true
		}
	}
	return "", false
}

var sections = regexp.MustCompile(
	`^(base|local|remote|machine|answers|denied|server|admission/(local|remote)|web|shows|want|host/.+|files/[^/]+|logs/[^/]+/[^/]+(/[^/]+)?)$`,
)

func load(dir, name, files string, servers map[steps.Side]*server, w *web) (*state, error) {
	path := filepath.Join(dir, name+".txtar")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &state{
		name: name, path: path, archive: txtar.Parse(data), objects: map[steps.Side][]*unstructured.Unstructured{},
		answers: map[string]any{}, server: map[steps.Side][]string{}, logs: map[string]string{},
		web: map[string][]webAnswer{},
	}
	for _, f := range s.archive.Files {
		if !sections.MatchString(f.Name) {
			return nil, fmt.Errorf("%s: unknown section %q", path, f.Name)
		}
	}
	if base, ok := s.section("base"); ok {
		if s.base, err = load(dir, strings.TrimSpace(base), files, servers, w); err != nil {
			return nil, err
		}
		s.inherit()
	}
	shows, _ := s.section("shows") // parsed first, because ${web-shown} refers to it
	if err := w.show(w.expand(shows)); err != nil {
		return nil, fmt.Errorf("%s: shows: %w", path, err)
	}
	cluster := servers[steps.Remote]
	if cluster == nil { // the remote side is the host
		cluster = servers[steps.Local]
	}
	expand := func(text string) string { return w.expand(cluster.expand(text)) }
	if err := s.write(files, expand); err != nil {
		return nil, err
	}
	if err := s.onHost(func(text string) string { return w.expand(cluster.mint(text)) }); err != nil {
		return nil, fmt.Errorf("%s: machine: %w", path, err)
	}
	for _, side := range steps.Sides {
		text, given := s.section(string(side))
		if servers[side] == nil {
			if given {
				return nil, fmt.Errorf("%s: the %s side is a host: it has sections host/PATH and machine, not %s", path, side, side)
			}
			continue
		}
		if text, err = fileMacros(text, files); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, side, err)
		}
		if err := s.merge(side, w.expand(servers[side].expand(text))); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, side, err)
		}
	}
	answers, _ := s.section("answers")
	if err := yaml.Unmarshal([]byte(expand(strings.ReplaceAll(answers, "${files}", files))), &s.answers); err != nil {
		return nil, fmt.Errorf("%s: answers: %w", path, err)
	}
	maps.DeleteFunc(s.answers, func(_ string, v any) bool { return v == nil })
	pages, _ := s.section("web")
	if err := webSection(s.web, w.expand(pages)); err != nil {
		return nil, fmt.Errorf("%s: web: %w", path, err)
	}
	denied, _ := s.section("denied")
	s.denied = append(s.denied, lines(denied)...)
	if err := s.admissions(); err != nil {
		return nil, fmt.Errorf("%s: admission: %w", path, err)
	}
	words, _ := s.section("server")
	for _, l := range lines(words) {
		side, what, ok := strings.Cut(l, ": ")
		if !ok {
			return nil, fmt.Errorf("%s: server: %q is not SIDE: WHAT", path, l)
		}
		s.server[steps.Side(side)] = append(s.server[steps.Side(side)], what)
	}
	s.want, _ = s.section("want")
	return s, nil
}

// timeout returns how long an API server can take to answer. 0 means the default. The timeout is long for servers that
// do answer, because answers take longer on a busy machine.
func (s *state) timeout(side steps.Side) time.Duration {
	for _, word := range s.server[side] {
		if word == "down" || word == "hangs" || word == "refuses" {
			return 0
		}
	}
	return timeout
}

// write writes the files/ sections into a directory and stores the logs/ sections.
func (s *state) write(folder string, expand func(string) string) error {
	for _, f := range s.archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "files/"); ok {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(expand(string(f.Data))), 0o600); err != nil {
				return err
			}
		}
		if pod, ok := strings.CutPrefix(f.Name, "logs/"); ok {
			s.logs[pod] = string(f.Data)
		}
	}
	return nil
}

// onHost merges host/ sections and the machine section over the base's.
func (s *state) onHost(expand func(string) string) error {
	var base *machine
	if s.base != nil {
		base = s.base.machine
	}
	s.machine = newMachine(base)
	for _, f := range s.archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "host"); ok {
			s.machine.files[name] = expand(string(f.Data))
		}
	}
	text, _ := s.section("machine")
	return s.machine.section(expand(text))
}

func (s *state) inherit() {
	for side, objs := range s.base.objects {
		for _, o := range objs {
			s.objects[side] = append(s.objects[side], o.DeepCopy())
		}
	}
	for k, v := range s.base.answers {
		s.answers[k] = v
	}
	maps.Copy(s.web, s.base.web)
	maps.Copy(s.logs, s.base.logs)
	for side, words := range s.base.server {
		s.server[side] = slices.Clone(words)
	}
	s.denied = append(s.denied, s.base.denied...)
}

func (s *state) merge(side steps.Side, text string) error {
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var doc map[string]any
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if doc == nil {
			continue
		}
		if err := s.put(side, doc); err != nil {
			return err
		}
	}
}

func (s *state) put(side steps.Side, doc map[string]any) error {
	raw, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	var plain map[string]any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return err
	}
	if plain["kind"] == "Secret" {
		foldStringData(plain)
	}
	obj := &unstructured.Unstructured{Object: plain}
	gone, _ := plain["$delete"].(bool)
	if gone && obj.GetKind() == "*" {
		return s.empty(side, obj.GetNamespace())
	}
	at := -1
	for i, o := range s.objects[side] {
		if o.GetKind() == obj.GetKind() && o.GetAPIVersion() == obj.GetAPIVersion() &&
			o.GetNamespace() == obj.GetNamespace() && o.GetName() == obj.GetName() {
			at = i
		}
	}
	switch {
	case gone && at < 0:
		return fmt.Errorf("%s %s does not exist, so it cannot be deleted", obj.GetKind(), obj.GetName())
	case gone:
		s.objects[side] = append(s.objects[side][:at], s.objects[side][at+1:]...)
	case at < 0:
		s.objects[side] = append(s.objects[side], obj)
	default:
		old, err := s.objects[side][at].MarshalJSON()
		if err != nil {
			return err
		}
		if raw, err = json.Marshal(plain); err != nil {
			return err
		}
		merged, err := jsonpatch.MergePatch(old, raw)
		if err != nil {
			return err
		}
		return s.objects[side][at].UnmarshalJSON(merged)
	}
	return nil
}

// empty removes all objects of a namespace.
func (s *state) empty(side steps.Side, namespace string) error {
	all := len(s.objects[side])
	s.objects[side] = slices.DeleteFunc(
		s.objects[side], func(o *unstructured.Unstructured) bool { return namespace != "" && o.GetNamespace() == namespace },
	)
	if len(s.objects[side]) == all {
		return fmt.Errorf("namespace %q contains no objects to delete", namespace)
	}
	return nil
}

// foldStringData merges stringData into data, as an API server does.
func foldStringData(secret map[string]any) {
	text, _ := secret["stringData"].(map[string]any)
	data, _ := secret["data"].(map[string]any)
	if data == nil && len(text) > 0 {
		data = map[string]any{}
		secret["data"] = data
	}
	for k, v := range text {
		data[k] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(v)))
	}
	delete(secret, "stringData")
}

// rewrite writes a new want section into the file.
func (s *state) rewrite(want string) error {
	found := false
	for i := range s.archive.Files {
		if s.archive.Files[i].Name == "want" {
			s.archive.Files[i].Data, found = []byte(want), true
		}
	}
	if !found {
		s.archive.Files = append(s.archive.Files, txtar.File{Name: "want", Data: []byte(want)})
	}
	return os.WriteFile(s.path, txtar.Format(s.archive), 0o644)
}

func lines(text string) []string {
	var out []string
	for _, l := range bytes.Split([]byte(text), []byte("\n")) {
		if t := strings.TrimSpace(string(l)); t != "" && !strings.HasPrefix(t, "#") {
			out = append(out, t)
		}
	}
	return out
}
