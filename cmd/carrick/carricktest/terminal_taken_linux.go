package carricktest

import (
	"time"

	"golang.org/x/sys/unix"
)

// taken waits until carrick has read the typed keys. If carrick reads two keys together, they can look like one: escape
// and a letter, for example.
func (p *Terminal) taken() {
	often := time.NewTicker(2 * time.Millisecond)
	defer often.Stop()
	for late := time.Now().Add(unread); time.Now().Before(late); <-often.C {
		if waiting, err := unix.IoctlGetInt(int(p.tty.Fd()), unix.TIOCINQ); err != nil || waiting == 0 {
			return
		}
	}
}
