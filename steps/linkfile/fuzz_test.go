package linkfile_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"carrick/steps/linkfile"
	"carrick/steps/stepstest"
)

const fuzzLink = "apiVersion: carrick/v1alpha1\nkind: Link\nmetadata: {name: a}\nguide: kinds\nlocal: {context: a, " +
	"kubeconfig: ~/.kube/b}\nremote: {context: b}\nanswers:\n"

// Writing and reading an accepted link file gives the same content. The error for a rejected file lists all faults,
// each with line and column.
func FuzzLinkFile(f *testing.F) {
	for _, answers := range []string{
		"  {}\n", "  q.0: text\n", "  q.4: 80\n", "  q.4: '80'\n", "  q.11: yes\n", "  q.13: |\n    a: 1\n    b: [2]\n",
		"  q.1.many: [a, b]\n", "  q.12: three\n", "  hidden: x\n", "  no: x\n",
		"  q.0: \"\\e[31m\\u202e\"\n", "  q.0: ~\n", "  q.0: ''\n", "  q.0: !!binary aGVsbG8=\n", "  q.0: 2001-01-01\n",
		"  ? {a: b}\n  : c\n", "  <<: {q.0: a}\n", "  q.0: 0x10\n", "  q.5: 1e3\n", "  q.5: .inf\n",
	} {
		f.Add([]byte(fuzzLink + answers))
	}
	f.Add([]byte(goodLink))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte(fuzzLink + "---\nb: c\n"))
	f.Add([]byte(strings.Replace(fuzzLink, "metadata: {name: a}", "metadata: {name: a, \"\\u001b\": b}", 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := linkfile.Parse("l.yaml", data, stepstest.EveryKind())
		if err != nil {
			faultsHavePlaces(t, err)
			return
		}
		if linkfile.CheckName(l.Name()) != nil || l.Guide != "kinds" {
			t.Errorf("took %q of guide %q", l.Name(), l.Guide)
		}
		written, err := l.Marshal()
		if err != nil {
			t.Fatalf("what was read can't be written: %v", err)
		}
		again, err := linkfile.Parse("l.yaml", written, stepstest.EveryKind())
		if err != nil {
			t.Fatalf("what was written can't be read: %v\n%s", err, written)
		}
		if !reflect.DeepEqual(l.Answers, again.Answers) || l.Metadata != again.Metadata ||
			!reflect.DeepEqual(l.Local, again.Local) || !reflect.DeepEqual(l.Remote, again.Remote) {
			t.Errorf("%#v became %#v by\n%s", l, again, written)
		}
	})
}

func faultsHavePlaces(t *testing.T, err error) {
	t.Helper()
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			faultsHavePlaces(t, one)
		}
		return
	}
	fault := (*linkfile.FileError)(nil)
	if !errors.As(err, &fault) {
		t.Fatalf("not a fault of the file: %v", err)
	}
	if fault.Problem == "" || (fault.Line < 1 || fault.Column < 1) && !strings.Contains(fault.Problem, "1 MiB") {
		t.Errorf("no place: %#v", fault)
	}
}
