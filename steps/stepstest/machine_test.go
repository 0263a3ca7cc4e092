package stepstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"carrick/cluster/host"
	"carrick/steps"
)

// hostGuide has a check that reads a host in each possible way and reports the results.
func hostGuide() *steps.Guide {
	on := func(name string, found func(context.Context, *host.Host) (string, error)) steps.Check {
		return steps.Check{
			Name: name, Title: name, On: steps.Local, Run: func(ctx context.Context, e steps.Env) steps.Result {
				text, err := found(ctx, e.Host)
				if errors.Is(err, host.ErrFolder) {
					return steps.Skipped("it is a folder")
				}
				if err != nil {
					return steps.Failed(err.Error(), "")
				}
				return steps.Warned(text, "")
			},
		}
	}
	return &steps.Guide{
		Name: "host",
		Sides: map[steps.Side]steps.Role{
			steps.Local: {Name: "web node", Kind: steps.Host}, steps.Remote: {Name: "cluster", Kind: steps.Cluster},
		},
		Steps: []steps.Step{{Name: "look", Checks: []steps.Check{
			on("file", func(ctx context.Context, h *host.Host) (string, error) {
				info, err := h.Stat(ctx, "/etc/x")
				if err != nil {
					return "", err
				}
				text, err := h.Read(ctx, "/etc/link")
				return fmt.Sprintf("%o %d %s", info.Mode.Perm(), info.UID, text), err
			}),
			on("command", func(ctx context.Context, h *host.Host) (string, error) {
				out, _, err := h.Run(ctx, "kubectl", "version", "--client")
				var bad *exec.ExitError
				if errors.As(err, &bad) {
					return fmt.Sprintf("exit %d: %v", bad.ExitCode(), err), nil
				}
				return out, err
			}),
			on("cluster", func(ctx context.Context, h *host.Host) (string, error) {
				c, err := h.Cluster(ctx, "/root/kubeconfig")
				if err != nil {
					return "", err
				}
				who, err := c.WhoAmI(ctx)
				return who.Name, err
			}),
		}}},
	}
}

const hostState = `-- host/etc/x --
hello
-- host/root/ca.crt --
${ca-pem}
-- host/root/token --
${jwt ondemand ondemand +1h 2h}
-- host/root/kubeconfig --
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "${server}", certificate-authority: ca.crt}}]
users: [{name: u, user: {tokenFile: token}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
-- machine --
modes: {/etc/x: 0600}
owners: {/etc/x: 1000}
links: {/etc/link: x}
commands:
  kubectl version --client: {out: v1.36}
`

func TestAHostInAState(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"healthy": hostState,
		"other": "-- base --\nhealthy\n-- host/etc/x --\nbye\n-- machine --\nmodes: {/etc/x: null}\nowners: {/etc/x: null}\n" +
			"commands: {kubectl version --client: {exit: 3, err: no such flag}}\n",
		"expired": "-- base --\nhealthy\n-- host/root/token --\n${jwt ondemand ondemand -1h 2h}\n-- machine --\ncommands: " +
			"{kubectl version --client: null}\n",
		"folder": "-- base --\nhealthy\n-- machine --\nfolder: true\nfiles: {/etc/x: null}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name+".txtar"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string][]string{
		"healthy": {"600 1000 hello", "v1.36", "system:serviceaccount:ondemand:ondemand"},
		"other": {
			"644 0 bye", "exit 3: run kubectl: exit status 3: no such flag", "system:serviceaccount:ondemand:ondemand",
		},
		"expired": {"600 1000 hello", "executable file not found", "Unauthorized"},
		"folder":  {"no such file", "it is a folder", "system:serviceaccount:ondemand:ondemand"},
	} {
		p := &played{guide: hostGuide()}
		p.look(t, os.DirFS(dir), dir, name)
		for i, c := range p.guide.Cells() {
			if found := p.verdicts[c].Found; !strings.Contains(strings.ToLower(found), strings.ToLower(want[i])) {
				t.Errorf("%s: %s: %q, not %q", name, c.Check, found, want[i])
			}
		}
	}
}

func TestAStateOfAHostThatIsWrong(t *testing.T) {
	for situation, text := range map[string]string{
		"objects on a host":  "-- local --\nkind: Pod\n",
		"an unknown key":     "-- machine --\nmode: {/etc/x: 0600}\n",
		"a mode in decimals": "-- machine --\nmodes: {/etc/x: 644}\n",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "bad.txtar"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := newWeb()
		if err != nil {
			t.Fatal(err)
		}
		remote := newServer(steps.Remote)
		if _, err := load(dir, "bad", t.TempDir(), map[steps.Side]*server{steps.Remote: remote}, w); err == nil {
			t.Errorf("%s: no error", situation)
		}
		remote.Close()
		w.Close()
	}
}
