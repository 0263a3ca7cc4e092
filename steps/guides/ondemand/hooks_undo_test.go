package ondemand_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

// Undo keeps the hook as long as ood_portal.yml calls it, which is the case if another user has changed that file.
func TestUndoKeepsAHookThatThePortalCalls(t *testing.T) {
	const hook, portal = "/etc/ood/hooks/k8s-pre-hook.sh", "/etc/ood/config/ood_portal.yml"
	_, healthy := stood(t, "healthy")
	record := func(action, path, text string, mode int) string {
		return fmt.Sprintf(
			"-- host/var/lib/carrick/test/%s.json --\n{\"path\": %q, \"hash\": %q, \"mode\": %d, \"order\": 1}\n",
			action, path, masked.New(text).Hash(), mode,
		)
	}
	s := stepstest.StandWith(
		t, ondemand.Guide(), assets, "testdata", "healthy", record("portal", portal, "what carrick wrote", 0o600)+
			record("pre-hook", hook, content(t, healthy, hook), 0o700),
	)
	root := s.Endpoint(steps.Local).Host.Root
	undo := func() *engine.Plan {
		t.Helper()
		p, err := s.PlanUndo(t.Context(), engine.Scope{Side: steps.Local, Steps: []string{"hooks"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Undo(t.Context(), p, nil); err != nil {
			t.Fatal(err)
		}
		return p
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, portal), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.Forget()
	}
	notes := map[string]string{}
	for _, it := range undo().Left() {
		notes[it.What] = it.Note
	}
	if n := notes[portal]; !strings.Contains(n, `pun_pre_hook_root_cmd: "`+hook+`"`) ||
		!strings.Contains(n, "OIDCPassRefreshToken") {
		t.Errorf("the plan does not say what to remove from %s: %q", portal, n)
	}
	if n := notes[hook]; !strings.Contains(n, "is kept while "+portal) {
		t.Errorf("the plan does not say why the hook is kept: %q", n)
	}
	if content(t, root, hook) == "" {
		t.Error("the hook is gone")
	}
	before := content(t, root, portal)
	wrapped := "/usr/bin/timeout 30 " + hook
	for text, want := range map[string]string{
		before + "no: [yaml\n": "",
		strings.ReplaceAll(before, hook, wrapped): `remove these lines from the file manually: pun_pre_hook_root_cmd: "` +
			wrapped,
	} {
		write(text)
		left := map[string]string{}
		for _, it := range undo().Left() {
			left[it.What] = it.Note
		}
		_, note, _ := strings.Cut(left[portal], "was changed by another user since carrick wrote it")
		if left[portal] == "" || want == "" && note != "" || !strings.HasPrefix(strings.TrimPrefix(note, "; "), want) {
			t.Errorf("the note on %s is %q, without %q", portal, left[portal], want)
		}
		if left[hook] == "" || content(t, root, hook) == "" {
			t.Errorf("the hook is not kept, with %q", note)
		}
	}
	text := strings.ReplaceAll(before, "pun_pre_hook_root_cmd: '"+hook+"'\n", "")
	write(text)
	if p := undo(); len(p.Left()) > 0 {
		t.Errorf("left: %+v", p.Left())
	}
	if content(t, root, portal) != text {
		t.Error("the portal's file was changed")
	}
	for _, gone := range []string{hook, "/var/lib/carrick/test/portal.json"} {
		if _, err := os.Stat(filepath.Join(root, gone)); !os.IsNotExist(err) {
			t.Errorf("%s: %v", gone, err)
		}
	}
}
