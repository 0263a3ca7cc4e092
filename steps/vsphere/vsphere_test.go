package vsphere_test

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"carrick/steps/stepstest"
	"carrick/steps/vsphere"
)

var assets = os.DirFS("../../assets/vsphere")

// The NFS server of the states takes connections, and is no more than that.
func TestMain(m *testing.M) {
	server, err := net.Listen("tcp", "127.60.0.49:2049")
	switch {
	case err == nil:
		defer server.Close()
	case !errors.Is(err, syscall.EADDRINUSE): // another run of these tests has it
		panic(err)
	}
	m.Run()
}

func TestStates(t *testing.T) {
	stepstest.Play(t, vsphere.Guide(), assets, "testdata")
}
