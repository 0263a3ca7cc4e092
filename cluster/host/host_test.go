package host

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"carrick/cluster"
	"carrick/cluster/masked"
	"carrick/cluster/tracked"
)

// newHost returns a host with these files in its root folder. A name that ends in "@" is a symlink to the text.
func newHost(t *testing.T, files map[string]string) *Host {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		link, isLink := strings.CutSuffix(name, "@")
		path := filepath.Join(root, link)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		err := error(nil)
		if isLink {
			err = os.Symlink(text, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o640)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	h, err := New(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func TestNewHost(t *testing.T) {
	if _, err := New(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(file); err == nil {
		t.Error("a file is taken for a folder")
	}
}

func TestHostHere(t *testing.T) {
	for _, c := range []struct {
		situation, root string
		here, want      bool
	}{
		{"this machine", "/", false, true},
		{"a folder", t.TempDir(), false, false},
		{"a folder that was opened as here", t.TempDir(), true, true},
	} {
		h, err := NewWith(c.root, Options{Here: c.here})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if h.Here() != c.want {
			t.Errorf("%s: here %v, want %v", c.situation, h.Here(), c.want)
		}
		if c.root != "/" && !h.IsFolder() {
			t.Errorf("%s has no commands, wherever it is", c.situation)
		}
	}
}

func TestHostRead(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	up := strings.Repeat("../", 30) + outside
	h := newHost(t, map[string]string{
		"etc/a": "hello", "etc/link@": "a", "etc/absolute@": "/etc/a", "etc/chain@": "/etc/link", "conf@": "/etc",
		"etc/out@": outside, "etc/up@": up, "out@": filepath.Dir(outside), "loop@": "loop", "etc/self@": "../etc/./a",
	})
	if err := syscall.Mkfifo(filepath.Join(h.Root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		situation, path, want string
		is                    error
	}{
		{situation: "a file", path: "/etc/a", want: "hello"},
		{situation: "dots in the path", path: "/etc/../../etc/./a", want: "hello"},
		{situation: "a symlink", path: "/etc/link", want: "hello"},
		{situation: "a symlink through its own folder", path: "/etc/self", want: "hello"},
		{situation: "an absolute symlink is the host's", path: "/etc/absolute", want: "hello"},
		{situation: "a chain of symlinks", path: "/conf/chain", want: "hello"},
		{situation: "a symlink out of the root", path: "/etc/out", is: fs.ErrNotExist},
		{situation: "a symlink up and out of the root", path: "/etc/up", is: fs.ErrNotExist},
		{situation: "a folder's symlink out of the root", path: "/out/secret", is: fs.ErrNotExist},
		{situation: "a loop", path: "/loop", is: nil},
		{situation: "nothing", path: "/etc/none", is: fs.ErrNotExist},
		{situation: "a file taken for a folder", path: "/etc/a/b", is: nil},
		{situation: "a folder", path: "/etc", is: errNotRegular},
		{situation: "a pipe without a writer", path: "/pipe", is: errNotRegular},
		{situation: "a path that is not absolute", path: "etc/a", is: errNotAbsolute},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			got, err := h.Read(t.Context(), tc.path)
			if string(got) != tc.want || (err == nil) != (tc.want != "") || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("got %q, %v", got, err)
			}
			if err != nil && strings.Contains(err.Error(), h.Root) {
				t.Errorf("%q names the root", err)
			}
		})
	}
}

func TestHostStat(t *testing.T) {
	h := newHost(t, map[string]string{"etc/a": "hello"})
	info, err := h.Stat(t.Context(), "/etc/a")
	if err != nil || info.Mode != 0o640 || info.Size != 5 || info.UID != os.Getuid() || info.GID != os.Getgid() ||
		info.Hash != masked.New("hello").Hash() || time.Since(info.ModTime) > time.Hour {
		t.Errorf("got %+v, %v", info, err)
	}
	folder, err := h.Stat(t.Context(), "/etc")
	if err != nil || !folder.Mode.IsDir() || folder.Hash != "" {
		t.Errorf("got %+v, %v", folder, err)
	}
	if _, err := h.Stat(t.Context(), "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestHostWrite(t *testing.T) {
	outside := t.TempDir()
	start := map[string]string{"etc/a": "old", "etc/link@": "a", "out@": outside, "conf@": "/etc", "dir/x": ""}
	for _, tc := range []struct {
		situation, path string
		mode            fs.FileMode
		at              string // where the file is then
		wantMode        fs.FileMode
		is              error
	}{
		{situation: "a new file in new folders", path: "/var/lib/carrick/a", at: "var/lib/carrick/a", wantMode: 0o600},
		{situation: "a new file at the top", path: "/a", mode: 0o644, at: "a", wantMode: 0o644},
		{situation: "a file is replaced", path: "/etc/a", mode: 0o755, at: "etc/a", wantMode: 0o755},
		{situation: "through a folder's symlink within the root", path: "/conf/a", at: "etc/a", wantMode: 0o600},
		{situation: "a symlink", path: "/etc/link", is: errSymlink},
		{situation: "a folder", path: "/dir", is: errNotRegular},
		{situation: "the root", path: "/", is: errNotRegular},
		{situation: "not absolute", path: "a", is: errNotAbsolute},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			h := newHost(t, start)
			err := h.Write(t.Context(), tc.path, masked.New("new"), tc.mode)
			if tc.is != nil {
				if !errors.Is(err, tc.is) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(h.Root, tc.at)
			got, err := os.ReadFile(path)
			info, _ := os.Stat(path)
			if err != nil || string(got) != "new" || info.Mode() != tc.wantMode {
				t.Errorf("got %q, %v, %v", got, info, err)
			}
			left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".carrick-*"))
			if len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}

	t.Run("nothing is written outside of the root", func(t *testing.T) {
		h := newHost(t, start)
		// The symlink is the host's own: it leads to a folder below the root.
		if err := h.Write(t.Context(), "/out/a", masked.New("new"), 0); err != nil {
			t.Fatal(err)
		}
		if found, _ := os.ReadDir(outside); len(found) > 0 {
			t.Errorf("found %v", found)
		}
		if got, err := h.Read(t.Context(), filepath.Join(outside, "a")); err != nil || string(got) != "new" {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("writing the same again touches nothing", func(t *testing.T) {
		h := newHost(t, start)
		long := time.Now().Add(-time.Hour)
		path := filepath.Join(h.Root, "etc/a")
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
		if err := h.Write(t.Context(), "/etc/a", masked.New("old"), 0o640); err != nil {
			t.Fatal(err)
		}
		if info, _ := os.Stat(path); time.Since(info.ModTime()) < time.Minute {
			t.Error("it was written")
		}
	})
	t.Run("the owner is kept", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root may give files away")
		}
		h := newHost(t, start)
		path := filepath.Join(h.Root, "etc/a")
		if err := os.Chown(path, 1234, 4321); err != nil {
			t.Fatal(err)
		}
		if err := h.Write(t.Context(), "/etc/a", masked.New("new"), 0o640); err != nil {
			t.Fatal(err)
		}
		if info, err := h.Stat(t.Context(), "/etc/a"); err != nil || info.UID != 1234 || info.GID != 4321 {
			t.Errorf("got %+v, %v", info, err)
		}
	})
	t.Run("the caller has gone", func(t *testing.T) {
		h := newHost(t, start)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := h.Write(ctx, "/etc/a", masked.New("new"), 0); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

func TestHostRemove(t *testing.T) {
	h := newHost(t, map[string]string{"a": "hello", "b": "hello", "link@": "a"})
	hash := masked.New("hello").Hash()
	for _, tc := range []struct {
		situation, path, hash string
		is                    error
		stays                 bool
	}{
		{situation: "as it was", path: "/a", hash: hash},
		{situation: "gone already", path: "/a", hash: hash},
		{situation: "changed", path: "/b", hash: masked.New("other").Hash(), is: errChanged, stays: true},
		{situation: "without a hash", path: "/b", is: errChanged, stays: true},
		{situation: "a symlink", path: "/link", hash: hash, is: errSymlink, stays: true},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			if err := h.Remove(t.Context(), tc.path, tc.hash); !errors.Is(err, tc.is) {
				t.Errorf("error %v", err)
			}
			if _, err := os.Lstat(filepath.Join(h.Root, tc.path)); (err == nil) != tc.stays {
				t.Errorf("then: %v", err)
			}
		})
	}
}

func TestHostChangesWakeTheTrace(t *testing.T) {
	for _, tc := range []struct {
		situation, path string
		change          func(h *Host, at func(string) string) error
	}{
		{
			"written", "/etc/a",
			func(_ *Host, at func(string) string) error { return os.WriteFile(at("etc/a"), []byte("new"), 0o600) },
		},
		{"replaced by a rename", "/etc/a", func(h *Host, _ func(string) string) error {
			return h.Write(t.Context(), "/etc/a", masked.New("new"), 0)
		}},
		{"its mode", "/etc/a", func(_ *Host, at func(string) string) error { return os.Chmod(at("etc/a"), 0o600) }},
		{"removed", "/etc/a", func(_ *Host, at func(string) string) error { return os.Remove(at("etc/a")) }},
		{
			"appears", "/etc/new",
			func(_ *Host, at func(string) string) error { return os.WriteFile(at("etc/new"), nil, 0o600) },
		},
		{
			"its folder appears", "/opt/x/new",
			func(_ *Host, at func(string) string) error { return os.MkdirAll(at("opt/x"), 0o755) },
		},
		{"its folder goes", "/etc/a", func(_ *Host, at func(string) string) error { return os.RemoveAll(at("etc")) }},
		{
			"behind a symlink", "/conf/a",
			func(_ *Host, at func(string) string) error { return os.WriteFile(at("etc/a"), []byte("x"), 0o600) },
		},
		{"a symlink on the way leads elsewhere", "/conf/a", func(_ *Host, at func(string) string) error {
			return errors.Join(os.Symlink("/other", at("next")), os.Rename(at("next"), at("conf")))
		}},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			h := newHost(t, map[string]string{"etc/a": "hello", "conf@": "/etc", "other/a": "other"})
			start := time.Now()
			ctx, trace := tracked.WithTrace(t.Context())
			_, _ = h.Read(ctx, tc.path)
			if trace.Differs() {
				t.Fatal("it differs already")
			}
			if at, polled := trace.Seen(); polled || at.Before(start) {
				t.Errorf("seen %v, polled %v", at, polled)
			}
			if err := tc.change(h, func(name string) string { return filepath.Join(h.Root, name) }); err != nil {
				t.Fatal(err)
			}
			wait, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := trace.Wait(wait); err != nil {
				t.Error("the trace did not wake")
			}
		})
	}
}

func TestHostLooksAgainWhereItCannotWatch(t *testing.T) {
	h := newHost(t, map[string]string{"a": "hello"})
	h.watch.refused = errors.New("no inotify here")
	ctx, trace := tracked.WithTrace(t.Context())
	if _, err := h.Read(ctx, "/a"); err != nil {
		t.Fatal(err)
	}
	if _, polled := trace.Seen(); !polled {
		t.Error("it does not say that it polls")
	}
	if due := time.Until(trace.Expires); due <= 0 || due > pollEvery {
		t.Errorf("looks again in %v", due)
	}
}

func TestHostSaysWhichLimitKeepsItFromWatching(t *testing.T) {
	for _, tc := range []struct {
		errno syscall.Errno
		name  string
		fix   string
	}{
		{syscall.EMFILE, "max_user_instances", "; run: sudo sysctl fs.inotify.max_user_instances=512"},
		{syscall.ENOSPC, "max_user_watches", "; run: sudo sysctl fs.inotify.max_user_watches=524288"},
	} {
		value, err := os.ReadFile("/proc/sys/fs/inotify/" + tc.name)
		if err != nil {
			t.Skipf("no limit of inotify here: %v", err)
		}
		var log bytes.Buffer
		h, err := NewWith(t.TempDir(), Options{Clusters: cluster.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		h.watch.refused = os.NewSyscallError("inotify", tc.errno)
		ctx, trace := tracked.WithTrace(t.Context())
		for range 2 {
			_, _ = h.Read(ctx, "/a")
		}
		limit := "fs.inotify." + tc.name + " is " + string(bytes.TrimSpace(value)) + " ("
		err = trace.Unwatched()
		if err == nil || !strings.Contains(err.Error(), limit) || !strings.HasSuffix(err.Error(), tc.fix) {
			t.Errorf("unwatched: %v", err)
		}
		if strings.Count(log.String(), limit) != 1 || !strings.Contains(log.String(), tc.fix) {
			t.Errorf("log: %s", &log)
		}
	}
}

func TestHostRun(t *testing.T) {
	if folder := newHost(t, nil); true {
		if _, _, err := folder.Run(t.Context(), "true"); !errors.Is(err, ErrFolder) {
			t.Errorf("error %v", err)
		}
	}
	h, err := New("/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	t.Setenv("SECRET_TOKEN", "secret")

	t.Run("what it prints", func(t *testing.T) {
		out, errOut, err := h.Run(t.Context(), "sh", "-c", `printf 'a\033[31mb\n'; echo c >&2`)
		if err != nil || out != "ab\n" || errOut != "c\n" {
			t.Errorf("got %q, %q, %v", out, errOut, err)
		}
	})
	t.Run("no shell", func(t *testing.T) {
		out, _, err := h.Run(t.Context(), "echo", "$HOME; true", "*")
		if err != nil || out != "$HOME; true *\n" {
			t.Errorf("got %q, %v", out, err)
		}
	})
	t.Run("no secrets in its environment", func(t *testing.T) {
		out, _, err := h.Run(t.Context(), "env")
		if err != nil || strings.Contains(out, "secret") || !strings.Contains(out, "LC_ALL=C\n") ||
			!strings.Contains(out, "PATH=") {
			t.Errorf("got %q, %v", out, err)
		}
	})
	t.Run("a status that is not 0", func(t *testing.T) {
		_, _, err := h.Run(t.Context(), "sh", "-c", "echo bad news >&2; exit 3")
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(err.Error(), "bad news") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a command that is not there", func(t *testing.T) {
		if _, _, err := h.Run(t.Context(), "carrick-no-such-command"); !errors.Is(err, exec.ErrNotFound) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("much output is cut", func(t *testing.T) {
		out, _, err := h.Run(t.Context(), "head", "-c", "3000000", "/dev/zero")
		if err != nil || len(out) > runLimit {
			t.Errorf("got %d bytes, %v", len(out), err)
		}
	})
	t.Run("ctx ends it, and a child that holds its output", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, _, err := h.Run(ctx, "sh", "-c", "sleep 120 & sleep 120")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Minute {
			t.Errorf("error %v after %v", err, time.Since(start))
		}
	})
}
