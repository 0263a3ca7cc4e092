package proof

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carrick/cluster/clustertest/cases"
	"carrick/cluster/clustertest/hostile"
	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/exit"
	"carrick/cmd/carrick/export"
	"carrick/steps/linkfile"
)

// onFolders returns a carrick command with the guide trial, whose link and state are in folders.
func onFolders(t *testing.T, state string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "carrick-trial", args...)
	cmd.Dir = t.TempDir()
	for path, text := range map[string]string{
		"desk/.keep": "", "shelf/etc/.keep": "", "token": carricktest.TrialToken + "\n",
		"link.yaml": "apiVersion: carrick/v1alpha1\nkind: Link\nmetadata: {name: a}\nguide: trial\nlocal: {host: {root: " +
			"desk}}\nremote: {host: {root: shelf}}\n",
	} {
		path = filepath.Join(cmd.Dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Env = carricktest.OwnEnvironment(cmd.Dir)
	if state != "" {
		cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+state)
	}
	return cmd
}

var applyTrial = []string{"apply", "--yes", "link.yaml", "--secret", "trial.token=@token"}

func noteOf(cmd *exec.Cmd) string { return filepath.Join(cmd.Dir, "shelf/etc/note.conf") }

func linked(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, from); err != nil {
		t.Fatal(err)
	}
}

// precious creates a file of the user to which a hostile link points.
func precious(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func isMine(t *testing.T, path string) {
	t.Helper()
	if text, err := carricktest.ReadFile(path); err != nil || text != "mine" {
		t.Errorf("what the link leads to is %q, %v", text, err)
	}
}

// carrick writes no file through a symbolic link.
func TestVerifyHostileLinksAreNotWrittenThrough(t *testing.T) {
	t.Parallel()
	cases.Run(t, "hostile", "link file", func(t *testing.T) {
		target := precious(t)
		l := linkfile.New("renku", "a")
		l.Path = filepath.Join(t.TempDir(), "a.yaml")
		linked(t, l.Path, target)
		if err := l.Save(); err == nil ||
			!strings.Contains(err.Error(), "is not a regular file; carrick does not follow links here") {
			t.Errorf("it says %v", err)
		}
		isMine(t, target)
	})
	cases.Run(t, "hostile", "audit log", func(t *testing.T) {
		target, state := precious(t), t.TempDir()
		linked(t, filepath.Join(state, "carrick/audit.jsonl"), target)
		cmd := onFolders(t, state, applyTrial...)
		if _, said, code := carricktest.Finish(t, cmd); code != exit.Usage ||
			!strings.Contains(said, "nothing was changed") || !strings.Contains(said, "does not follow links here") {
			t.Errorf("exit code %d: %s", code, said)
		}
		isMine(t, target)
		if _, err := os.Stat(noteOf(cmd)); err == nil {
			t.Error("something was changed all the same")
		}
	})
	cases.Run(t, "hostile", "log", func(t *testing.T) {
		target, state := precious(t), t.TempDir()
		linked(t, filepath.Join(state, "carrick/carrick.log"), target)
		if _, said, code := carricktest.Finish(t, onFolders(t, state, applyTrial...)); code != 0 {
			t.Errorf("exit code %d: %s", code, said)
		}
		isMine(t, target)
	})
	cases.Run(t, "hostile", "folder of an export", func(t *testing.T) {
		target := t.TempDir()
		for _, to := range []string{target, filepath.Join(target, "not there")} {
			cmd := onFolders(t, "", "export", "link.yaml", "out", "--secret", "trial.token=@token")
			linked(t, filepath.Join(cmd.Dir, "out"), to)
			if out, said, code := carricktest.Finish(t, cmd); code != exit.Usage || out != "" ||
				!strings.Contains(said, "is a symlink, and carrick does not write through symlinks") {
				t.Errorf("exit code %d: %s", code, said)
			}
		}
		if left := hostile.Files(t, target); len(left) > 0 {
			t.Errorf("written there: %v", left)
		}
	})
	cases.Run(t, "hostile", "folder in an export", func(t *testing.T) {
		target := t.TempDir()
		cmd := onFolders(t, "", "export", "--force", "link.yaml", "out", "--secret", "trial.token=@token")
		for _, name := range export.Names {
			linked(t, filepath.Join(cmd.Dir, "out", name), target)
		}
		if _, said, code := carricktest.Finish(t, cmd); code != 0 {
			t.Errorf("exit code %d: %s", code, said)
		}
		if left := hostile.Files(t, target); len(left) > 0 {
			t.Errorf("written there: %v", left)
		}
		if info, err := os.Lstat(filepath.Join(cmd.Dir, "out/README.txt")); err != nil || !info.Mode().IsRegular() {
			t.Errorf("README.txt: %v, %v", info, err)
		}
	})
	cases.Run(t, "hostile", "file on a host", func(t *testing.T) {
		target := precious(t)
		cmd := onFolders(t, "", applyTrial...)
		linked(t, noteOf(cmd), target)
		if _, said, code := carricktest.Finish(t, cmd); code == 0 || !strings.Contains(said, "symlink") {
			t.Errorf("exit code %d: %s", code, said)
		}
		isMine(t, target)
	})
}

// On a full disk existing files are unchanged, no file is half-written, and carrick reports the error.
func TestVerifyHostileFullDisks(t *testing.T) {
	t.Parallel()
	cases.Run(t, "hostile", "full disk: link file", func(t *testing.T) {
		dir := hostile.Disk(t)
		l := linkfile.New("renku", "a")
		l.Path = filepath.Join(dir, "a.yaml")
		if err := l.Save(); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(l.Path)
		if err != nil {
			t.Fatal(err)
		}
		hostile.Fill(t, dir)
		l.Answers["pool.members"] = []string{strings.Repeat("user:a", 2000)}
		if err := l.Save(); err == nil ||
			!strings.Contains(err.Error(), "a.yaml: cannot be written: no space left on device") {
			t.Errorf("it says %v", err)
		}
		if now, err := os.ReadFile(l.Path); err != nil || string(now) != string(before) {
			t.Errorf("it is %q now, %v", now, err)
		}
		if files := hostile.Files(t, dir); len(files) != 1 {
			t.Errorf("left: %v", files)
		}
	})
	cases.Run(t, "hostile", "full disk: audit log", func(t *testing.T) {
		dir := hostile.Disk(t)
		hostile.Fill(t, dir)
		cmd := onFolders(t, dir, applyTrial...)
		if _, said, code := carricktest.Finish(t, cmd); code != exit.Usage ||
			!strings.Contains(said, "nothing was changed: the audit log cannot be written") ||
			!strings.Contains(said, "no space left") {
			t.Errorf("exit code %d: %s", code, said)
		}
		if _, err := os.Stat(noteOf(cmd)); err == nil {
			t.Error("something was changed all the same")
		}
	})
	cases.Run(t, "hostile", "full disk: export", func(t *testing.T) {
		dir := hostile.Disk(t)
		first := onFolders(t, "", "export", "link.yaml", filepath.Join(dir, "out"), "--secret", "trial.token=@token")
		if _, said, code := carricktest.Finish(t, first); code != 0 {
			t.Fatalf("exit code %d: %s", code, said)
		}
		before, err := carricktest.ReadFile(filepath.Join(dir, "out/README.txt"))
		if err != nil {
			t.Fatal(err)
		}
		hostile.Fill(t, dir)
		for _, args := range [][]string{
			{"export", "--force", "link.yaml", filepath.Join(dir, "out")}, {"export", "link.yaml", filepath.Join(dir, "new")},
		} {
			cmd := onFolders(t, "", append(args, "--secret", "trial.token=@token")...)
			if _, said, code := carricktest.Finish(t, cmd); code == 0 || !strings.Contains(said, "no space left") {
				t.Errorf("exit code %d: %s", code, said)
			}
		}
		if now, err := carricktest.ReadFile(filepath.Join(dir, "out/README.txt")); err != nil || now != before {
			t.Errorf("the old one is not what it was: %v", err)
		}
		if files := hostile.Files(t, dir); len(files) != 1 {
			t.Errorf("left: %v", files)
		}
	})
	cases.Run(t, "hostile", "full disk: report", func(t *testing.T) {
		dir := hostile.Disk(t)
		cmd := onFolders(t, "", filepath.Join("WHERE", "link.yaml"), "--secret", "trial.token=@token")
		cmd.Args[1] = filepath.Join(cmd.Dir, "link.yaml")
		cmd.Args[3] = "trial.token=@" + filepath.Join(cmd.Dir, "token")
		home := cmd.Dir
		cmd.Dir = dir
		hostile.Fill(t, dir)
		p := carricktest.StartOnTerminal(t, cmd, "XDG_STATE_HOME="+home)
		p.Wait(`/etc/note\.conf does not exist`)
		p.Types("s")
		p.Wait(`the report was not saved: no space left`)
		p.Types("q")
		p.Leaves()
		if files := hostile.Files(t, dir); len(files) != 0 {
			t.Errorf("left: %v", files)
		}
	})
	cases.Run(t, "hostile", "full disk: file on a host", func(t *testing.T) {
		dir := hostile.Disk(t)
		cmd := onFolders(t, "", applyTrial...)
		if err := os.Remove(filepath.Join(cmd.Dir, "shelf/etc/.keep")); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(cmd.Dir, "shelf/etc")); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, "etc"), 0o755); err != nil {
			t.Fatal(err)
		}
		link, err := carricktest.ReadFile(filepath.Join(cmd.Dir, "link.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(
			filepath.Join(cmd.Dir, "link.yaml"), []byte(strings.Replace(link, "root: shelf", "root: "+dir, 1)), 0o600,
		); err != nil {
			t.Fatal(err)
		}
		hostile.Fill(t, dir)
		if _, said, code := carricktest.Finish(t, cmd); code == 0 || !strings.Contains(said, "no space left") {
			t.Errorf("exit code %d: %s", code, said)
		}
		if left := hostile.Files(t, filepath.Join(dir, "etc")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// If a certificate is not valid yet, the finding says that this machine's clock may be wrong.
func TestVerifyHostileClockIsSaid(t *testing.T) {
	t.Parallel()
	for name, span := range map[string][2]time.Duration{
		"clock behind": {24 * time.Hour, 48 * time.Hour}, "clock ahead": {-48 * time.Hour, -24 * time.Hour},
	} {
		cases.Run(t, "hostile", name, func(t *testing.T) {
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			c := &x509.Certificate{
				SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(span[0]), NotAfter: time.Now().Add(span[1]),
				IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
				KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
				ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			}
			der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
			if err != nil {
				t.Fatal(err)
			}
			server := carricktest.Served(
				t, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, http.NotFound,
			)
			cmd := carricktest.Command(t, "check", "link.yaml", "--only", "clusters")
			if c, err = x509.ParseCertificate(der); err != nil {
				t.Fatal(err)
			}
			carricktest.Login{Server: server.URL, CA: c, User: "token: t"}.Write(t, cmd.Dir)
			out, said, code := carricktest.Finish(t, cmd)
			if code != exit.Unknown || !strings.Contains(out, "clock") {
				t.Errorf("exit code %d, and nothing of a clock: %s%s", code, out, said)
			}
		})
	}
}
