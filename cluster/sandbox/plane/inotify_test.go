package plane

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

// machine fakes a machine with a limited number of free inotify instances, and counts the open instances.
type machine struct{ free, open int }

func (m *machine) Close() error { m.open--; return nil }

func (m *machine) init() (io.Closer, error) {
	if m.open == m.free {
		return nil, os.NewSyscallError("inotify_init1", syscall.EMFILE)
	}
	m.open++
	return m, nil
}

func TestTooFewInotifyInstancesAreSaid(t *testing.T) {
	m := &machine{free: 5}
	err := lacking(22, "128", m.init)
	const want = `watch files: fs.inotify.max_user_instances is 128, so only 5 inotify instances are free of the 22 ` +
		`that the control planes use. The control planes then read files once a minute, and other programs fail with ` +
		`"too many open files". Run: sudo sysctl fs.inotify.max_user_instances=512`
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	if m.open != 0 {
		t.Errorf("%d are left open", m.open)
	}
}

func TestEnoughInotifyInstancesAreNotSaid(t *testing.T) {
	m := &machine{free: 22}
	if err := lacking(22, "128", m.init); err != nil || m.open != 0 {
		t.Errorf("%v, and %d are left open", err, m.open)
	}
	none := func() (io.Closer, error) { return nil, errors.ErrUnsupported }
	if err := lacking(22, "128", none); err != nil {
		t.Error(err)
	}
}

func TestNoControllerWatchesAFolderOfTheMachine(t *testing.T) {
	flags := strings.Join((&Plane{}).controllerManager().flags, " ")
	if !strings.Contains(flags, "--flex-volume-plugin-dir="+noFolder) {
		t.Errorf("flags: %s", flags)
	}
	// It gives up without a watch where it finds no folder, and can't make one.
	if _, err := os.Stat(noFolder); !os.IsNotExist(err) {
		t.Errorf("stat: %v", err)
	}
	if err := os.Mkdir(noFolder, 0o700); err == nil {
		_ = os.Remove(noFolder)
		t.Error("it can be made")
	}
}
