package ondemand

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// scripts lists wrappers around upstream's hooks. HOOKS represents the folder of these hooks. hides and not describe
// what bash does if the bootstrap fails with status 3.
var scripts = []struct {
	text  string
	hides bool // bash exits with status 0
	not   bool // the bootstrap does not run
}{
	{text: "HOOKS/k8s-bootstrap-ondemand.sh"},
	{text: "exec HOOKS/k8s-bootstrap-ondemand.sh"},
	{text: "HOOKS/k8s-bootstrap-ondemand.sh\nHOOKS/set-k8s-creds.sh", hides: true},
	{text: "set -e\nHOOKS/k8s-bootstrap-ondemand.sh\nHOOKS/set-k8s-creds.sh"},
	{text: "set -euo pipefail\nHOOKS/k8s-bootstrap-ondemand.sh | cat\nHOOKS/set-k8s-creds.sh"},
	{text: "set -o errexit\nHOOKS/k8s-bootstrap-ondemand.sh\nHOOKS/set-k8s-creds.sh"},
	{text: "set -e\nset +e\nHOOKS/k8s-bootstrap-ondemand.sh\nHOOKS/set-k8s-creds.sh", hides: true},
	{text: "set -e\nHOOKS/k8s-bootstrap-ondemand.sh | cat\nHOOKS/set-k8s-creds.sh", hides: true},
	{text: "set -e\nHOOKS/k8s-bootstrap-ondemand.sh || true", hides: true},
	{text: "set -e\nif HOOKS/k8s-bootstrap-ondemand.sh; then HOOKS/set-k8s-creds.sh; fi", hides: true},
	{text: "HOOKS/k8s-bootstrap-ondemand.sh || exit 1\nHOOKS/set-k8s-creds.sh"},
	{text: "HOOKS/k8s-bootstrap-ondemand.sh || exit\nHOOKS/set-k8s-creds.sh"},
	{text: "HOOKS/k8s-bootstrap-ondemand.sh || exit 0\nHOOKS/set-k8s-creds.sh", hides: true},
	{text: "HOOKS/k8s-bootstrap-ondemand.sh || echo bad\nHOOKS/set-k8s-creds.sh", hides: true},
	{text: "HOOKS/k8s-bootstrap-ondemand.sh || { echo bad >&2; exit 1; }\nHOOKS/set-k8s-creds.sh"},
	{text: "HOOKS/k8s-bootstrap-ondemand.sh || { echo bad >&2; exit; }\nHOOKS/set-k8s-creds.sh", hides: true},
	{text: "die() { echo \"$1\"; exit 2; }\nHOOKS/k8s-bootstrap-ondemand.sh || die bad\nHOOKS/set-k8s-creds.sh"},
	{text: "HOOKS/k8s-bootstrap-ondemand.sh && HOOKS/set-k8s-creds.sh"},
	{text: "HOOKS/k8s-bootstrap-ondemand.sh && HOOKS/set-k8s-creds.sh || exit 1\ntrue"},
	{text: "if ! HOOKS/k8s-bootstrap-ondemand.sh; then exit 1; fi\nHOOKS/set-k8s-creds.sh"},
	{text: "if HOOKS/k8s-bootstrap-ondemand.sh; then true; else exit 1; fi\nHOOKS/set-k8s-creds.sh"},
	{text: "! HOOKS/k8s-bootstrap-ondemand.sh", hides: true},
	{text: "HOOKS/k8s-bootstrap-ondemand.sh\nexit", hides: false},
	{text: "HOOKS/k8s-bootstrap-ondemand.sh\nexit 0", hides: true},
	{text: "HOOKS/k8s-bootstrap-ondemand.sh\nrc=$?\nHOOKS/set-k8s-creds.sh\nexit $rc"},
	{text: "HOOKS/k8s-bootstrap-ondemand.sh\nrc=$?\nHOOKS/set-k8s-creds.sh\nexit", hides: true},
	{text: "HOOKS/k8s-bootstrap-ondemand.sh\nif [ $? -ne 0 ]; then exit 1; fi\nHOOKS/set-k8s-creds.sh"},
	{text: "HOOKS/k8s-bootstrap-ondemand.sh\n[ $? -eq 0 ] || exit 1\nHOOKS/set-k8s-creds.sh"},
	{text: "HOOKS/k8s-bootstrap-ondemand.sh\n[ -n \"$1\" ] || exit 0\nHOOKS/set-k8s-creds.sh", hides: true},
	{text: "HOOKS/k8s-bootstrap-ondemand.sh &\nwait", hides: true},
	{text: "out=$(HOOKS/k8s-bootstrap-ondemand.sh 2>&1) || exit 1\ntrue"},
	{text: "export out=$(HOOKS/k8s-bootstrap-ondemand.sh 2>&1) || exit 1\ntrue", hides: true},
	{text: "echo $(HOOKS/k8s-bootstrap-ondemand.sh)", hides: true},
	{text: "( HOOKS/k8s-bootstrap-ondemand.sh || exit 1 )\ntrue", hides: true},
	{text: "set -e\n( HOOKS/k8s-bootstrap-ondemand.sh || exit 1 )\ntrue"},
	{text: "run() { HOOKS/k8s-bootstrap-ondemand.sh; }\nrun || exit 1\ntrue"},
	{text: "run() { HOOKS/k8s-bootstrap-ondemand.sh; }\ntrue", hides: true, not: true},
	{text: "for h in k8s-bootstrap-ondemand.sh set-k8s-creds.sh; do HOOKS/$h; done", hides: true},
	{text: "for h in k8s-bootstrap-ondemand.sh set-k8s-creds.sh; do HOOKS/$h || exit 1; done"},
	{text: "case x in x) HOOKS/k8s-bootstrap-ondemand.sh || exit 1;; esac\ntrue"},
	{text: "D=HOOKS\nB=\"$D/k8s-bootstrap-ondemand.sh\"\n/bin/bash \"$B\" || exit 1\ntrue"},
	{text: ". HOOKS/k8s-bootstrap-ondemand.sh\ntrue"},
	{text: "exit 0\nHOOKS/k8s-bootstrap-ondemand.sh", hides: true, not: true},
	{text: "{ exit 0; }\nHOOKS/k8s-bootstrap-ondemand.sh", hides: true, not: true},
	{text: "true && exit 0 # perhaps\nHOOKS/k8s-bootstrap-ondemand.sh", hides: true, not: true},
	{text: "false && exit 0\nHOOKS/k8s-bootstrap-ondemand.sh"},
	{text: "exec true\nHOOKS/k8s-bootstrap-ondemand.sh", hides: true, not: true},
	{text: "# HOOKS/k8s-bootstrap-ondemand.sh\necho HOOKS/k8s-bootstrap-ondemand.sh", hides: true, not: true},
	{text: ": <<'X'\nHOOKS/k8s-bootstrap-ondemand.sh\nX", hides: true, not: true},
}

// readHook agrees with bash about each wrapper. It treats every condition as one that can be true.
func TestAHookIsReadAsBashRunsIt(t *testing.T) {
	for _, tc := range scripts {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"k8s-bootstrap-ondemand.sh": "echo ran >&2\nexit 3", "set-k8s-creds.sh": "exit 0",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/bash\n"+text+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		script := "#!/bin/bash\n" + strings.ReplaceAll(tc.text, "HOOKS", dir) + "\n"
		out, err := bash(t, script)
		if ran := strings.Contains(out, "ran\n"); ran == tc.not && !strings.Contains(tc.text, "$(") ||
			(err == nil) != tc.hides {
			t.Errorf("%s\nbash: it ran: %v, %v", tc.text, ran, err)
		}
		does, err := readHook(script)
		if err != nil {
			t.Errorf("%s\n%v", tc.text, err)
		}
		perhaps := strings.Contains(tc.text, "# perhaps")
		if runs := strings.Contains(does.words, bootstrapName); runs == tc.not && !perhaps {
			t.Errorf("%s\nit runs the bootstrap: %v", tc.text, runs)
		}
		if !tc.not && does.hides != tc.hides {
			t.Errorf("%s\nit hides a failure: %v", tc.text, does.hides)
		}
	}
}

func TestWhatRunsAHook(t *testing.T) {
	for first, hides := range map[string]bool{
		"#!/bin/bash": true, "#!/bin/bash -e": false, "#! /usr/bin/env bash": true, "#!/bin/sh -eu": false,
		"#!/usr/bin/env -S bash -e": false,
	} {
		does, err := readHook(first + "\nk8s-bootstrap-ondemand.sh\ntrue\n")
		if err != nil || does.hides != hides {
			t.Errorf("%s: %+v, %v", first, does, err)
		}
	}
	for _, script := range []string{"", "ELF", "#!/usr/bin/python3\nk8s-bootstrap-ondemand.sh\n", "#!\n"} {
		if _, err := readHook(script); !errors.Is(err, errNoShell) {
			t.Errorf("%q: %v", script, err)
		}
	}
	if _, err := readHook("#!/bin/bash\nif true; then\nk8s-bootstrap-ondemand.sh\n"); err == nil ||
		errors.Is(err, errNoShell) {
		t.Errorf("an if without an end: %v", err)
	}
}

func TestCarricksHookHidesNoFailure(t *testing.T) {
	for _, h := range []hookScript{
		{
			kubeconfig: rootKubeconfig, kubectl: "/usr/local/bin/kubectl", level: "baseline", creds: true,
			also: "/opt/site/hook",
		},
		{kubeconfig: rootKubeconfig, kubectl: "/usr/local/bin/kubectl", level: "baseline"},
	} {
		does, err := readHook(script(t, h))
		if err != nil || does.hides || !strings.Contains(does.words, bootstrapName) {
			t.Errorf("%+v: %+v, %v", h, does, err)
		}
	}
}

// exits is true only if a script exits before it runs anything.
func TestAnExitBeforeEverythingElse(t *testing.T) {
	for text, exits := range map[string]bool{
		"exit 0\nkubectl apply -f x": true, "set -e\nV=1\necho \"$V\"\n{ exit; }\nkubectl apply -f x": true,
		"[ -n \"$1\" ] || exit 1\nkubectl apply -f x": false, "exec python3 /opt/site/x.py": false,
		". /opt/site/lib.sh\nmain \"$@\"\nexit $?": false, "/opt/site/x\nexit 0": false, "f() { exit 1; }\nf": false,
		"echo \"$(/opt/site/x)\"\nexit": false, "\"$(/bin/cat /opt/site/x)\"\nexit": false, "kubectl apply -f x": false,
	} {
		does, err := readHook("#!/bin/bash\n" + text + "\n")
		if err != nil || does.exits != exits {
			t.Errorf("%s\nit exits before: %v, %v", text, does.exits, err)
		}
	}
}

// readHook stops with an error at functions that call each other endlessly.
func TestAHookWithoutAnEndIsNotRead(t *testing.T) {
	script := "#!/bin/bash\nf() { f; f; f; f; f; f; f; f; }\nf\n"
	if _, err := readHook(script); !errors.Is(err, errTooLong) {
		t.Errorf("%v", err)
	}
}
