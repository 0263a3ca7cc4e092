package nfs

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start(t.Context(), filepath.Join(t.TempDir(), "export"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestWhatMountSays(t *testing.T) {
	s := start(t)
	if err := os.Mkdir(filepath.Join(s.Root, "volume"), 0o700); err != nil {
		t.Fatal(err)
	}
	other := start(t)
	for _, c := range []struct {
		situation, server, path string
		options                 []string
		want                    string // "": it is mounted
	}{
		{"the export", s.Address, Export, []string{"nfsvers=4.1", "hard"}, ""},
		{"a folder in it", s.Address, Export + "/volume", nil, ""},
		{"a path that is none", s.Address, Export + "/none", nil, "No such file or directory"},
		{"a path beside it", s.Address, "/srv", nil, "No such file or directory"},
		{"a path out of it", s.Address, Export + "/../../etc", nil, "No such file or directory"},
		{
			"a version that no client has", s.Address, Export,
			[]string{"nfsvers=5"},
			"mount.nfs: mount system call failed for /mnt",
		},
		{
			"a version that is no number", s.Address, Export, []string{"vers=new"}, "mount.nfs: parsing error on 'vers=' option",
		},
		{
			"a minor version that no client has", s.Address, Export,
			[]string{"nfsvers=4.9"},
			"incorrect mount option was specified for /mnt",
		},
		{"nobody listens", "127.61.255.254", Export, nil, "Connection refused for 127.61.255.254:" + Export + " on /mnt"},
		{"no such name", "nfs.invalid", Export, nil, "Failed to resolve server"},
		{"somebody else's", other.Address, Export, nil, "stand-in: the sandbox has no export of"},
	} {
		folder, err := s.Mount(t.Context(), c.server, c.path, "/mnt", c.options)
		if c.want == "" && (err != nil || !strings.HasPrefix(folder, s.Root)) || c.want != "" && (err == nil ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %s, %v, want %q", c.situation, folder, err, c.want)
		}
	}
	s.Deny()
	if _, err := s.Mount(t.Context(), s.Address, Export, "/mnt", nil); err == nil ||
		!strings.Contains(err.Error(), "access denied by server while mounting "+s.Address+":"+Export) {
		t.Errorf("an export that is not for this cluster: %v", err)
	}
	s.Shut()
	if _, err := s.Mount(t.Context(), s.Address, Export, "/mnt", nil); err == nil ||
		!strings.Contains(err.Error(), "Connection refused") {
		t.Errorf("a port that is shut: %v", err)
	}
}

func TestItAnswersTheProcedureNull(t *testing.T) {
	s := start(t)
	for _, c := range []struct {
		situation                string
		program, version, number uint32
		want                     []uint32
	}{
		{"NFS 3", 100003, 3, 0, []uint32{success}},
		{"NFS 4", 100003, 4, 0, []uint32{success}},
		{"NFS 2", 100003, 2, 0, []uint32{versionMismatch, 3, 4}},
		{"another program", 100005, 3, 0, []uint32{programUnknown}},
		{"another procedure", 100003, 3, 1, []uint32{procUnknown}},
	} {
		conn, err := net.Dial("tcp", net.JoinHostPort(s.Address, "2049"))
		if err != nil {
			t.Fatal(err)
		}
		var ask []byte
		for _, w := range []uint32{lastFragment | 40, 7, call, rpcVersion, c.program, c.version, c.number, 0, 0, 0, 0} {
			ask = binary.BigEndian.AppendUint32(ask, w)
		}
		if _, err := conn.Write(ask); err != nil {
			t.Fatal(err)
		}
		said := make([]byte, 4*(6+len(c.want)))
		if _, err := io.ReadFull(conn, said); err != nil {
			t.Fatalf("%s: %v", c.situation, err)
		}
		if xid := binary.BigEndian.Uint32(said[4:]); xid != 7 {
			t.Errorf("%s: it answers %d", c.situation, xid)
		}
		for i, want := range c.want {
			if got := binary.BigEndian.Uint32(said[4*(6+i):]); got != want {
				t.Errorf("%s: %d, want %d", c.situation, got, want)
			}
		}
		conn.Close()
	}
	conn, err := net.Dial("tcp", net.JoinHostPort(s.Address, "2049"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil || n != 0 {
		t.Errorf("what is no call is answered: %d, %v", n, err)
	}
}
