package plane

import (
	"errors"
	"fmt"
	"io"
	"syscall"
)

// Watches is the number of inotify instances that the components of one control plane use. kube-apiserver uses one for
// each certificate with its key, each CA and each configuration file that it reloads. kube-controller-manager uses one
// for each signer of certificates.
const Watches = 11

// inotifyLimit is the sysctl that limits the number of inotify instances of a user.
const inotifyLimit = "fs.inotify.max_user_instances"

// lacking returns an error unless open succeeds n times before any result is closed. The error names limit, the value
// of the sysctl.
func lacking(n int, limit string, open func() (io.Closer, error)) error {
	for free := range n {
		instance, err := open()
		if errors.Is(err, syscall.EMFILE) {
			return fmt.Errorf("watch files: %s is %s, which leaves %d inotify instances of the %d "+
				"that the control planes use: they read files once a minute, and other programs fail with %q; run: sudo "+
				"sysctl %[1]s=512",
				inotifyLimit, limit, free, n, syscall.EMFILE.Error())
		} else if err != nil {
			return nil // inotify is unavailable: the components log that themselves
		}
		defer instance.Close()
	}
	return nil
}
