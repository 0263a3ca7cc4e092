package plane

import (
	"errors"
	"fmt"
	"io"
	"syscall"
)

// Watches is how many inotify instances the components of one control plane take: kube-apiserver one for each pair of
// certificate and key, authority and configuration that it reads again, kube-controller-manager one for each signer of
// certificates.
const Watches = 11

// inotifyLimit is the sysctl that limits the instances of one user.
const inotifyLimit = "fs.inotify.max_user_instances"

// lacking returns an error unless n of what open returns can be open at once, as long as limit allows.
func lacking(n int, limit string, open func() (io.Closer, error)) error {
	for free := range n {
		instance, err := open()
		if errors.Is(err, syscall.EMFILE) {
			return fmt.Errorf("watch files: %s is %s, which leaves %d inotify instances of the %d "+
				"that the control planes use: they read files once a minute, and other programs fail with %q; run: sudo "+
				"sysctl %[1]s=512",
				inotifyLimit, limit, free, n, syscall.EMFILE.Error())
		} else if err != nil {
			return nil // no inotify at all: the components say so in their logs
		}
		defer instance.Close()
	}
	return nil
}
