package vsphere_test

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

var assets = os.DirFS("../../../assets/vsphere")

// TestMain listens on the NFS port of the recorded states and only accepts connections. If another
// run of these tests uses the port, TestMain listens as soon as that run ends.
func TestMain(m *testing.M) {
	err := serveNFS()
	if errors.Is(err, syscall.EADDRINUSE) {
		go func() {
			for again := time.NewTicker(5 * time.Millisecond); serveNFS() != nil; <-again.C {
			}
		}()
	} else if err != nil {
		panic(err)
	}
	m.Run()
}

// export is the listener on the NFS port. It stays open until the process ends.
var export net.Listener

func serveNFS() (err error) {
	export, err = net.Listen("tcp", "127.60.0.49:2049")
	return err
}

func TestStates(t *testing.T) {
	stepstest.Play(t, vsphere.Guide(), assets, "testdata")
}
