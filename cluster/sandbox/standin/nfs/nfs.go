// Package nfs plays an NFS server with one export, and mount.nfs(8) as its client. The export is a folder of this
// machine. Port 2049 of a loopback address answers what a client asks first: the procedure NULL of the program NFS in
// its versions 3 and 4. Nothing is ever mounted: callers ask Mount, which returns the folder, or fails with the words
// of mount.nfs.
//
// Sources: linux-nfs/nfs-utils 7acc8b94 (2.9.2-rc6), and the RFCs 5531 (replies) and 7530 (version 4).
//
//   - What a failed mount prints, by errno: utils/mount/error.c (mount_error).
//   - A name that does not resolve, and a version other than 3 and 4 (EIO): utils/mount/stropts.c (nfs_try_mount).
//   - A version that is no number: utils/mount/network.c (nfs_nfs_version).
//
// Known differences: a server that cannot be reached fails the mount at once, where mount.nfs retries for minutes
// (utils/mount/stropts.c, nfs_is_permanent_error). There is no portmapper and no mountd: showmount gets no answer, and
// version 3 behaves as version 4. The export lets in every client until Deny.
//
// Guesses, no source found: a minor version that does not exist is refused with EINVAL, and a client that the export
// does not let in with EACCES in version 4, too. Both come from the client's kernel.
package nfs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// Export is the path of the export.
	Export = "/srv/kubeflow"
	port   = 2049

	placeOf    = "127.61.0.%d" // each sandbox has an address of its own
	manyPlaces = 250
	loopback   = "127.0.0.1" // where loopback is one address alone
	dialWithin = time.Second
)

// Server is the server and its export.
type Server struct {
	Address string // of loopback
	Root    string // the folder

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
	denied   bool // the export is not for this cluster
	squashed bool // its root is nobody on the server, who may not write
}

// Start makes the folder and listens until Close, at an address that no other
// sandbox has.
func Start(ctx context.Context, root string) (*Server, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	s := &Server{Root: root, open: map[net.Conn]bool{}}
	var err error
	for n := range manyPlaces {
		if err = s.listen(ctx, fmt.Sprintf(placeOf, n+1)); err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	if err != nil {
		if other := s.listen(ctx, loopback); other != nil {
			return nil, fmt.Errorf(
				"port %d, on which an NFS server listens, is free at no address of loopback: %w", port, errors.Join(err, other),
			)
		}
	}
	return s, nil
}

func (s *Server) listen(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	s.Address, s.listener = address, listener
	go s.accept(listener)
	return nil
}

func (s *Server) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.open[conn] = true
		s.mu.Unlock()
		go func() {
			answer(conn)
			s.mu.Lock()
			delete(s.open, conn)
			s.mu.Unlock()
		}()
	}
}

// Shut makes nothing listen any more, as a firewall would that refuses. The folder
// stays.
func (s *Server) Shut() {
	_ = s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.open {
		_ = conn.Close()
	}
}

// Close ends the server and removes its folder.
func (s *Server) Close() {
	s.Shut()
	_ = os.RemoveAll(s.Root)
}

// Deny makes the export one that is not for this cluster's addresses.
func (s *Server) Deny() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = true
}

// Squash makes the cluster's root nobody on the server, who may not write at the top of
// the export.
func (s *Server) Squash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.squashed = true
}

// Squashed tells whether root may not write at the top of the export.
func (s *Server) Squashed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.squashed
}

// versions are the protocol versions that a client has.
var versions = []string{"3", "4", "4.0", "4.1", "4.2"}

// checkVersion returns what mount.nfs prints where options ask for a version that it does not have.
func checkVersion(options []string, target string) error {
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		if (name != "nfsvers" && name != "vers") || slices.Contains(versions, value) {
			continue
		}
		major, _, _ := strings.Cut(value, ".")
		switch n, err := strconv.Atoi(major); {
		case err != nil:
			return fmt.Errorf("mount.nfs: parsing error on '%s=' option", name)
		case n != 3 && n != 4:
			return fmt.Errorf("mount.nfs: mount system call failed for %s", target)
		}
		return fmt.Errorf("mount.nfs: an incorrect mount option was specified for %s", target)
	}
	return nil
}

// Mount returns the folder that stands for a path of a server. Its error is what mount.nfs would print where it is to
// mount that at target.
func (s *Server) Mount(ctx context.Context, server, dir, target string, options []string) (folder string, err error) {
	if err := checkVersion(options, target); err != nil {
		return "", err
	}
	conn, err := (&net.Dialer{Timeout: dialWithin}).DialContext(ctx, "tcp", net.JoinHostPort(server, strconv.Itoa(port)))
	if err != nil {
		return "", unreached(server, dir, target, err)
	}
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch remote := conn.RemoteAddr().(*net.TCPAddr); {
	case remote.IP.String() != s.Address:
		return "", fmt.Errorf("stand-in: no export of %s is played, %s:%s alone is", server, s.Address, Export)
	case s.denied:
		return "", fmt.Errorf("mount.nfs: access denied by server while mounting %s:%s", server, dir)
	}
	inside, ok := strings.CutPrefix(path.Clean(dir)+"/", Export+"/")
	folder = filepath.Join(s.Root, filepath.FromSlash(inside))
	if info, err := os.Stat(folder); !ok || err != nil || !info.IsDir() {
		return "", fmt.Errorf(
			"mount.nfs: mounting %s:%s failed, reason given by server: No such file or directory", server, dir,
		)
	}
	return folder, nil
}

// unreached is what mount.nfs prints of a server that cannot be reached.
func unreached(server, dir, target string, err error) error {
	var unknown *net.DNSError
	var timeout net.Error
	cause := "No route to host"
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("mount.nfs: Failed to resolve server %s: Name or service not known", server)
	case errors.Is(err, syscall.ECONNREFUSED):
		cause = "Connection refused"
	case errors.As(err, &timeout) && timeout.Timeout():
		cause = "Connection timed out"
	}
	return fmt.Errorf("mount.nfs: %s for %s:%s on %s", cause, server, dir, target)
}
