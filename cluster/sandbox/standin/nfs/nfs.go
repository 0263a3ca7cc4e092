// Package nfs fakes an NFS server with one export, and mount.nfs(8) as its client. The export is a directory of this
// machine. The server listens on port 2049 of a loopback address and answers only a client's first call, the procedure
// NULL of the program NFS in versions 3 and 4. No file system is ever mounted. Mount returns the exported directory, or
// an error with mount.nfs's message.
//
// Sources: linux-nfs/nfs-utils 7acc8b94 (2.9.2-rc6), and the RFCs 5531 (replies) and 7530 (version 4).
//
//   - The messages of a failed mount, by errno: utils/mount/error.c (mount_error).
//   - A name that does not resolve, and a version other than 3 and 4 (EIO): utils/mount/stropts.c (nfs_try_mount).
//   - A version that is not a number: utils/mount/network.c (nfs_nfs_version).
//
// Known differences: if a server cannot be reached, the mount fails immediately. mount.nfs retries for minutes
// (utils/mount/stropts.c, nfs_is_permanent_error). There is no portmapper and no mountd, so showmount does not work and
// version 3 behaves like version 4. The export allows every client until Deny is called.
//
// Guesses without a source: an unknown minor version fails with EINVAL, and a client that the export does not allow
// fails with EACCES, also in version 4. Both errors are from the client's kernel.
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
	// Export is the path of the export on the server.
	Export = "/srv/kubeflow"
	port   = 2049

	placeOf    = "127.61.0.%d" // each sandbox has its own address
	manyPlaces = 250
	loopback   = "127.0.0.1" // fallback for machines with one loopback address
	dialWithin = time.Second
)

// Server is a running NFS server with one export.
type Server struct {
	Address string // a loopback address
	Root    string // the exported directory

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
	denied   bool // the export denies this cluster
	squashed bool // root is mapped to nobody and cannot write
}

// Start creates the exported directory and listens until Close is called. No other sandbox uses the same address.
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
				"NFS port %d is free on no loopback address: %w", port, errors.Join(err, other),
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

// Shut stops listening, so that connections are rejected. The directory remains.
func (s *Server) Shut() {
	_ = s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.open {
		_ = conn.Close()
	}
}

// Close stops the server and removes its directory.
func (s *Server) Close() {
	s.Shut()
	_ = os.RemoveAll(s.Root)
}

// Deny makes the export deny this cluster's addresses.
func (s *Server) Deny() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = true
}

// Squash maps the cluster's root to nobody. nobody cannot write to the top directory of the export.
func (s *Server) Squash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.squashed = true
}

// Squashed reports whether root is mapped to nobody.
func (s *Server) Squashed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.squashed
}

// versions lists the protocol versions that mount.nfs supports.
var versions = []string{"3", "4", "4.0", "4.1", "4.2"}

// checkVersion returns mount.nfs's error if options contain an unsupported version.
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

// Mount returns the directory on this machine for the path dir on server. Its errors have the messages of mount.nfs for
// a mount at target.
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
		return "", fmt.Errorf("stand-in: the sandbox has no export of %s, only %s:%s", server, s.Address, Export)
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

// unreached returns mount.nfs's error for an unreachable server.
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
