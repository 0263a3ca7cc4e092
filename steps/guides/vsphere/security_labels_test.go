package vsphere

import (
	"strings"
	"testing"
)

func TestALevelIsPutIntoTheFileAndNothingElseIs(t *testing.T) {
	want := map[string]string{
		"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "restricted",
	}
	const added = "pod-security.kubernetes.io/enforce: \"baseline\"\npod-security.kubernetes.io/warn: \"restricted\"\n"
	for situation, c := range map[string]struct{ text, want string }{
		"after existing lines": {
			"# ours\n\na.b/c: 'x'   # why\nkey: \"\"\n", "# ours\n\na.b/c: 'x'   # why\nkey: \"\"\n" + added,
		},
		"in the place of another": {
			"pod-security.kubernetes.io/enforce: privileged # for now\na: b\n",
			"pod-security.kubernetes.io/enforce: \"baseline\" # for now\na: b\npod-security.kubernetes.io/warn: " +
				"\"restricted\"\n",
		},
		"it has the level": {
			"pod-security.kubernetes.io/enforce: baseline\n", "pod-security.kubernetes.io/enforce: baseline\n",
		},
		"nothing is there":           {"", added[:len(added)-1] + "\n"},
		"nothing but comments there": {"# none yet\n", "# none yet\n" + added},
	} {
		t.Run(situation, func(t *testing.T) {
			got, err := withLevel(c.text, want)
			if err != nil || got != c.want {
				t.Errorf("%v\n%q, want\n%q", err, got, c.want)
			}
			if again, err := withLevel(got, want); err != nil || again != got {
				t.Errorf("it is written again: %v\n%q", err, again)
			}
		})
	}
	for situation, text := range map[string]string{
		"all in one line": "{a: b}", "a list": "- a\n", "no YAML": "a: [", "a value that is no text": "a: {b: c}\n",
	} {
		if got, err := withLevel(text, want); err == nil {
			t.Errorf("%s: it becomes %q", situation, got)
		}
	}
}

func TestALevelIsTakenOutOfTheFile(t *testing.T) {
	set := map[string]string{
		"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "restricted",
	}
	const before = "# ours\npod-security.kubernetes.io/enforce: privileged # for now\na: b\n"
	const undone = "# ours\npod-security.kubernetes.io/enforce: \"privileged\" # for now\na: b\n"
	written, err := withLevel(before, set)
	if err != nil {
		t.Fatal(err)
	}
	for situation, c := range map[string]struct{ text, want string }{
		"as written": {written, undone},
		"a level of others": {
			strings.Replace(written, "baseline", "restricted", 1), strings.Replace(undone, "privileged", "restricted", 1),
		},
		"a line of others": {written + "c: d\n", undone + "c: d\n"},
		"a new file":       {"# new\nteam: a\n", "# new\nteam: a\n"},
	} {
		got, err := editsLabels().Without(c.text, before, anyLabels(set), nil)
		if err != nil || got != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", situation, err, got, c.want)
		}
	}
}
