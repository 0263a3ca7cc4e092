package carricktest

import (
	"time"

	"golang.org/x/sys/unix"
)

// taken returns when carrick has read the typed keys, or after a timeout. Keys that carrick reads together may look
// like another key: escape and a letter, for example.
func (p *Terminal) taken() {
	often := time.NewTicker(2 * time.Millisecond)
	defer often.Stop()
	for late := time.Now().Add(unread); time.Now().Before(late); <-often.C {
		if waiting, err := unix.IoctlGetInt(int(p.tty.Fd()), unix.TIOCINQ); err != nil || waiting == 0 {
			return
		}
	}
}
