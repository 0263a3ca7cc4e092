package main

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"carrick/cluster/clustertest"
	"carrick/steps/facts"
	"carrick/steps/stepstest"
)

// admin is one of two who share nothing: a folder with a kubeconfig of
// one cluster alone, a link file, and a key of age.
type admin struct {
	*testing.T
	dir, role, peer string
	env             []string
	key             *age.X25519Identity
	command         string          // "": program
	peerKey         string          // of the other's file, until the first apply has confirmed it
	confirmed       bool            // the link file has that key
	said            strings.Builder // all that was ever said there
}

// newAdmin is an admin whose link file says what stands on the sides and what is
// answered; without a kubeconfig he has none at all.
func newAdmin(t *testing.T, guide, role, peer, ends, answers, kubeconfig string) *admin {
	t.Helper()
	o := &admin{T: t, dir: t.TempDir(), role: role, peer: peer}
	var err error
	if o.key, err = age.GenerateX25519Identity(); err != nil {
		t.Fatal(err)
	}
	o.write("key", o.key.String()+"\n")
	o.write("link.yaml", "apiVersion: carrick/v1alpha1\nkind: Link\nmetadata: {name: apart}\nguide: "+guide+"\n"+ends+answers)
	o.env = append(ownEnvironment(o.dir), "KUBECONFIG="+filepath.Join(o.dir, "config"))
	if kubeconfig != "" {
		text, err := os.ReadFile(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		o.write("config", string(text))
	}
	return o
}

// peeringAdmin has one of the two clusters of a peering.
func peeringAdmin(t *testing.T, box *clustertest.Sandbox, side, role, peer, answers string) *admin {
	t.Helper()
	ends := ""
	for _, s := range []string{clustertest.Local, clustertest.Remote} {
		if s == side {
			ends += s + ": {context: " + box.Contexts[s] + "}\n"
		} else {
			ends += s + ": {facts: theirs.facts}\n"
		}
	}
	return newAdmin(t, "liqo", role, peer, ends, "answers: {offloading.namespace: apart-demo"+answers+"}\n", box.Kubeconfigs[side])
}

func (o *admin) write(name, text string) {
	o.Helper()
	if err := os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o600); err != nil {
		o.Fatal(err)
	}
}

func (o *admin) read(name string) string {
	o.Helper()
	text, err := os.ReadFile(filepath.Join(o.dir, name))
	if err != nil {
		o.Fatal(err)
	}
	return string(text)
}

// run runs carrick there, with the admin's key, and wants one of these exit codes. The first apply confirms whose key
// signed the other's file.
func (o *admin) run(codes []int, args ...string) (out, said string, code int) {
	o.Helper()
	if args[0] == "apply" && o.peerKey != "" && !o.confirmed {
		args = append(args, "--signer", o.peerKey)
		o.confirmed = true
	}
	return o.alone(codes, append(args, "--identity", "key")...)
}

// alone runs carrick there without a key.
func (o *admin) alone(codes []int, args ...string) (out, said string, code int) {
	o.Helper()
	command := o.command
	if command == "" {
		command = programPath(o)
	}
	cmd := exec.CommandContext(o.Context(), command, args...)
	cmd.Dir, cmd.Env = o.dir, o.env
	out, said, code = finish(o, cmd)
	o.said.WriteString(out + said)
	o.Logf("%s: carrick %s: exit code %d\n%s%s", o.role, strings.Join(args, " "), code, out, said)
	for _, c := range codes {
		if c == code {
			return out, said, code
		}
	}
	o.Fatalf("%s: carrick %s: exit code %d, want one of %v", o.role, strings.Join(args, " "), code, codes)
	return out, said, code
}

// hand writes this side's file, and puts it where the other one looks for it.
func (o *admin) hand(to *admin) string {
	o.Helper()
	o.run([]int{0}, "handover", "link.yaml", "--side", o.role, "-o", "ours.facts", "--to", to.key.Recipient().String())
	text := o.read("ours.facts")
	to.write("theirs.facts", text)
	f, err := facts.Decode([]byte(text))
	if err != nil {
		o.Fatal(err)
	}
	to.peerKey = f.Signer
	return text
}

// peered is two admins that take turns until both are green.
func peered(t *testing.T, box *clustertest.Sandbox, answers string) (consumer, provider *admin, handed []string) {
	t.Helper()
	consumer = peeringAdmin(t, box, clustertest.Local, "consumer", "provider", answers)
	provider = peeringAdmin(t, box, clustertest.Remote, "provider", "consumer", answers)
	return consumer, provider, takeTurns(consumer, provider, 6)
}

// takeTurns has two admins apply and hand over in turn until the checks of both pass, at most so many times. It
// returns all that was handed over.
func takeTurns(local, remote *admin, most int) (handed []string) {
	local.Helper()
	// Nobody has a file yet: the first one is written without any.
	with := remote.read("link.yaml")
	remote.write("link.yaml", strings.Replace(with, "local: {facts: theirs.facts}\n", "", 1))
	handed = append(handed, remote.hand(local))
	remote.write("link.yaml", with)
	for turn := range most {
		for _, o := range []*admin{local, remote} {
			to := map[*admin]*admin{local: remote, remote: local}[o]
			o.run([]int{0, 5}, "apply", "--yes", "link.yaml", "--side", o.role)
			handed = append(handed, o.hand(to))
		}
		_, _, ours := local.run([]int{0, 3, 5}, "check", "link.yaml")
		_, _, theirs := remote.run([]int{0, 3, 5}, "check", "link.yaml")
		if ours == 0 && theirs == 0 {
			local.Logf("green after %d turns", turn+1)
			return handed
		}
	}
	local.Fatalf("not green after %d turns", most)
	return nil
}

// liqoByTwoAdmins has two admins, neither with the other's kubeconfig, come to a green peering by handing each
// other files of facts. files: undo has the other side's file.
func liqoByTwoAdmins(answers string, files bool) func(*testing.T) {
	return func(t *testing.T) {
		box := clustertest.Start(t)
		box.Seed(t, "liqo")
		before := stepstest.Snapshot(t, box)
		consumer, provider, handed := peered(t, box, answers)
		secrets := privateOf(t, box, answers)
		for _, text := range append(handed, consumer.said.String(), provider.said.String()) {
			for name, secret := range secrets {
				if strings.Contains(text, secret) {
					t.Errorf("%s is in a file that was handed over, or was said", name)
				}
			}
		}
		for _, a := range []*admin{consumer, provider} {
			if !files {
				a.write("link.yaml", withoutFacts.ReplaceAllString(a.read("link.yaml"), ""))
			}
			a.run([]int{0}, "undo", "--yes", "link.yaml", "--side", a.role)
		}
		if d := cmp.Diff(before, stepstest.Snapshot(t, box)); d != "" {
			t.Errorf("not as before (-before +after):\n%s", d)
		}
	}
}

var withoutFacts = regexp.MustCompile(`(?m)^(local|remote): \{facts: .*\n`)

// privateOf is what no file of facts may hold in the open, as it stands and as
// Kubernetes encodes it.
func privateOf(t *testing.T, box *clustertest.Sandbox, answers string) map[string]string {
	t.Helper()
	type at struct{ side, ns, name, key string }
	all := []at{{clustertest.Local, "liqo-tenant-rome", "kubeconfig-controlplane-rome", "kubeconfig"}}
	if !strings.Contains(answers, "network.join") {
		all = append(all, at{clustertest.Local, "liqo-tenant-rome", "gw-keys", "privateKey"}, at{clustertest.Remote, "liqo-tenant-milan", "gw-keys", "privateKey"})
	}
	if strings.Contains(answers, "service-account") {
		all = append(all, at{clustertest.Remote, "liqo-tenant-milan", "liqo-controlplane-milan-token", "token"})
	} else {
		all = append(all, at{clustertest.Local, "liqo-tenant-rome", "liqo-controlplane-key-rome", `tls\.key`})
	}
	out := map[string]string{}
	for _, s := range all {
		encoded := box.Run(t, s.side, "", "-n", s.ns, "get", "secret", s.name, "-o", "jsonpath={.data."+s.key+"}")
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(raw) < 32 {
			t.Fatalf("%s of %s: %d bytes, %v", s.key, s.name, len(raw), err)
		}
		out[s.key+" of "+s.name+" on the "+s.side] = string(raw)
		out[s.key+" of "+s.name+" on the "+s.side+", encoded"] = encoded
	}
	return out
}
