package plane

import (
	"errors"
	"fmt"
	"io"
	"syscall"
)

// Watches is the number of inotify instances that one control plane uses. kube-apiserver uses one for each reloadable
// file: certificates with their keys, CAs and configuration files. kube-controller-manager uses one for each
// certificate signer.
const Watches = 11

// inotifyLimit is the sysctl for the maximum number of inotify instances per user.
const inotifyLimit = "fs.inotify.max_user_instances"

// lacking returns an error unless open succeeds n times in a row. It closes the instances afterwards. limit is the
// current value of the sysctl, for the error message.
func lacking(n int, limit string, open func() (io.Closer, error)) error {
	for free := range n {
		instance, err := open()
		if errors.Is(err, syscall.EMFILE) {
			return fmt.Errorf(
				"watch files: %s is %s, so only %d inotify instances are free of the %d that the control planes use. The control "+
					"planes then read files once a minute, and other programs fail with %q. Run: sudo sysctl %[1]s=512",
				inotifyLimit, limit, free, n, syscall.EMFILE.Error(),
			)
		} else if err != nil {
			return nil // inotify is unavailable, and the components log that themselves
		}
		defer instance.Close()
	}
	return nil
}
