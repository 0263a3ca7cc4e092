package extension

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// servedPair serves the certificate and key in a directory. It reads the files again when one of them changes, so a
// renewed certificate is served without a restart. As long as the files are not a valid pair, it serves the last valid
// pair, because the two files are not always written at the same time.
type servedPair struct {
	folder string
	log    *slog.Logger
	ends   func(*tls.Certificate) // called with each certificate that is read

	mu    sync.Mutex
	pair  *tls.Certificate
	seen  []os.FileInfo // the files' information when they were last read
	fault string        // the last fault that was logged
}

var pairFiles = []string{"tls.crt", "tls.key"}

// current returns the current certificate. It implements tls.Config.GetCertificate.
func (c *servedPair) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.look()
	switch {
	case err == nil:
		c.fault = ""
	case c.fault != err.Error():
		c.fault = err.Error()
		c.log.Error("the certificate cannot be read", "error", err, "shown", c.pair != nil)
	}
	if c.pair == nil {
		return nil, err
	}
	return c.pair, nil
}

// look reads the pair again if the files have changed since they were last read.
func (c *servedPair) look() error {
	now := make([]os.FileInfo, len(pairFiles))
	for i, name := range pairFiles {
		info, err := os.Stat(filepath.Join(c.folder, name))
		if err != nil {
			return err
		}
		now[i] = info
	}
	if c.seen != nil && same(c.seen[0], now[0]) && same(c.seen[1], now[1]) {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(c.folder, pairFiles[0]), filepath.Join(c.folder, pairFiles[1]))
	if err != nil {
		return fmt.Errorf("read %s: %w", c.folder, err)
	}
	c.pair, c.seen = &pair, now
	c.log.Info(
		"certificate read", "serial", pair.Leaf.SerialNumber.Text(16), "names", pair.Leaf.DNSNames, "ends",
		pair.Leaf.NotAfter,
	)
	if c.ends != nil {
		c.ends(&pair)
	}
	return nil
}

// same reports whether a file is unchanged since it was read. It returns false if a symlink has a new target, as after
// an update of a Secret volume.
func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
