package carricktest

import (
	"time"

	"golang.org/x/sys/unix"
)

// taken returns when carrick has read what was typed, or does not for a while: keys
// that are read together may be another key, as escape and a letter are.
func (p *Terminal) taken() {
	often := time.NewTicker(2 * time.Millisecond)
	defer often.Stop()
	for late := time.Now().Add(unread); time.Now().Before(late); <-often.C {
		if waiting, err := unix.IoctlGetInt(int(p.tty.Fd()), unix.TIOCINQ); err != nil || waiting == 0 {
			return
		}
	}
}
