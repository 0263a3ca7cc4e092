// Package nfs plays an NFS server with one export: a folder of this machine, which
// stands for it, and a port 2049 of loopback that answers what a client asks first,
// the procedure NULL of the program NFS in its versions 3 and 4 (RFC 5531, RFC 7530).
// Nothing is ever mounted: who would mount it asks Mount, which says what mount(8)
// and mount.nfs(8) of nfs-utils say, and gets the folder.
//
// Known differences: no portmapper and no mountd, so showmount has no answer; who a
// client is is not looked at.
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
			return nil, fmt.Errorf("port %d, on which an NFS server listens, is free at no address of loopback: %w", port, errors.Join(err, other))
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

// versions are what the mount option nfsvers may be.
var versions = []string{"3", "4", "4.0", "4.1", "4.2"}

// Mount returns the folder that stands for a path of a server, or what mount says.
func (s *Server) Mount(ctx context.Context, server, dir string, options []string) (folder string, err error) {
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		if (name == "nfsvers" || name == "vers") && !slices.Contains(versions, value) {
			return "", errors.New("mount.nfs: an incorrect mount option was specified")
		}
	}
	conn, err := (&net.Dialer{Timeout: dialWithin}).DialContext(ctx, "tcp", net.JoinHostPort(server, strconv.Itoa(port)))
	if err != nil {
		return "", unreached(server, dir, err)
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
		return "", fmt.Errorf("mount.nfs: mounting %s:%s failed, reason given by server: No such file or directory", server, dir)
	}
	return folder, nil
}

// unreached is what mount.nfs says of a server that can't be reached.
func unreached(server, dir string, err error) error {
	var unknown *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("mount.nfs: Failed to resolve server %s: Name or service not known", server)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("mount.nfs: Connection refused for %s:%s", server, dir)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("mount.nfs: Connection timed out for %s:%s", server, dir)
	}
	return fmt.Errorf("mount.nfs: No route to host for %s:%s", server, dir)
}
