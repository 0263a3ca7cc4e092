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

// The NFS server of the states takes connections, and is no more than that. Where
// another run of these tests has its port, this one takes it over as soon as that
// ends.
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

// export is what listens there, until the program ends.
var export net.Listener

func serveNFS() (err error) {
	export, err = net.Listen("tcp", "127.60.0.49:2049")
	return err
}

func TestStates(t *testing.T) {
	stepstest.Play(t, vsphere.Guide(), assets, "testdata")
}
