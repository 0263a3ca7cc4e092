package action

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster"
	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/inventory"
)

// exportedLines exports one doer and returns one line per exported item.
func exportedLines(t *testing.T, d Exporter, assets map[string]string) ([]string, error) {
	t.Helper()
	files := fstest.MapFS{}
	for name, text := range assets {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	env := steps.Env{
		Side: steps.Remote, Link: "l", Action: "a", Assets: files, Cluster: &cluster.Cluster{},
		Answers: steps.Answers{Lookup: func(string) any { return "given" }},
		Own: steps.Facts{Lookup: func(name string) (any, error) {
			if name == "token" {
				return masked.New("s3cret"), nil
			}
			return nil, steps.Absent("no fact %s", name)
		}},
	}
	things, err := d.Export(t.Context(), env)
	var out []string
	for _, x := range things {
		switch {
		case x.Object != nil:
			if x.Object.GetLabels() != nil || x.Object.GetAnnotations() != nil {
				t.Errorf("%s carries marks", inventory.Describe(x.Object))
			}
			out = append(out, "object "+inventory.Describe(x.Object))
		case x.Path != "":
			out = append(out, fmt.Sprintf("file %s %04o %s", x.Path, x.Mode, x.Content))
		default:
			out = append(out, "left "+x.Left)
		}
	}
	if strings.Contains(fmt.Sprintf("%v %v", things, err), "s3cret") {
		t.Error("a secret is in it")
	}
	return out, err
}

const (
	anAccount   = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: x, namespace: '${answers.n}'}\n"
	aSecret     = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {t: '${own.token}', u: plain}\n"
	anEmpty     = "apiVersion: v1\nkind: Secret\nmetadata: {name: e}\ntype: kubernetes.io/service-account-token\n"
	notYet      = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {t: '${own.none}'}\n"
	alsoNotYet  = anAccount + "---\n" + notYet
	noteContent = "port = 80\n"
)

func TestExport(t *testing.T) {
	note := func(context.Context, steps.Env) (masked.Value, error) { return masked.New(noteContent), nil }
	for name, c := range map[string]struct {
		doer  Exporter
		asset string
		want  []string
		err   string
	}{
		"manifest": {
			Manifest{File: "a"}, anAccount + "---\n" + anEmpty, []string{"object ServiceAccount given/x", "object Secret e"}, "",
		},
		"secret values": {Manifest{File: "a"}, aSecret, []string{"left Secret s (keys t, u)"}, ""},
		"secret not there": {
			Manifest{File: "a"}, notYet, []string{"left a Secret whose values do not exist yet: no fact none"}, "",
		},
		"object not there": {Manifest{File: "a"}, alsoNotYet, nil, "no fact none"},
		"nothing to render": {
			Manifest{File: "a", Each: func(context.Context, steps.Env) ([]any, error) { return nil, nil }}, anAccount, nil, "",
		},
		"mint": {Mint{File: "a", Keys: []string{"key"}}, anEmpty, []string{"left Secret e (key key)"}, ""},
		"file": {
			File{Path: "/etc/note.conf", Mode: 0o640, Content: note}, "", []string{"file etc/note.conf 0640 " + noteContent}, "",
		},
		"secret file": {
			File{Path: "/etc/key", Mode: 0o600, Secret: true, Content: note}, "", []string{"left file /etc/key"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := exportedLines(t, c.doer, map[string]string{"a": c.asset})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if (err == nil) != (c.err == "") || (err != nil && !strings.HasSuffix(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
		})
	}
}

func TestExportRefusesPathsThatLeaveIt(t *testing.T) {
	for _, p := range []string{"../x", "/etc/x", "a/../../x", ".", "a//b"} {
		if CheckExport("a", []Exported{{Path: p}}) == nil {
			t.Errorf("%q was taken", p)
		}
	}
	if err := CheckExport("a", []Exported{{Path: "etc/x"}}); err != nil {
		t.Error(err)
	}
}
