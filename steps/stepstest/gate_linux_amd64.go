package stepstest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

// gateEnv is the environment variable with the path of the program to run behind a gate. The test binary first makes
// the kernel ask before each change. It then executes that program.
const gateEnv = "CARRICK_PROOF_GATE"

// Constants from linux/seccomp.h that package syscall does not have.
const (
	sysSeccomp     = 317
	sysRenameat2   = 316
	setModeFilter  = 1
	newListener    = 8
	noNewPrivs     = 38
	returnAllow    = 0x7fff0000
	returnAsk      = 0x7fc00000
	receiveRequest = 0xc0502100
	sendAnswer     = 0xc0182101
	goOn           = 1
	socketFD       = 3
	removeFolder   = 0x200
)

// watched maps the system calls that change directory entries to their names.
var watched = map[uint32]string{syscall.SYS_RENAMEAT: "rename", sysRenameat2: "rename", syscall.SYS_UNLINKAT: "unlink"}

func init() {
	if os.Getenv(gateEnv) == "" {
		return
	}
	err := becomeGated()
	fmt.Fprintln(os.Stderr, "gate:", err)
	os.Exit(125)
}

// becomeGated installs the filter and executes the program. It must be called by init, which runs on a locked OS
// thread.
func becomeGated() error {
	fd, err := listen()
	if err != nil {
		return err
	}
	if err := syscall.Sendmsg(socketFD, []byte{0}, syscall.UnixRights(fd), nil, 0); err != nil {
		return err
	}
	_ = syscall.Close(fd)
	_ = syscall.Close(socketFD)
	program := os.Getenv(gateEnv)
	_ = os.Unsetenv(gateEnv)
	return syscall.Exec(program, os.Args, os.Environ())
}

// listen makes the kernel ask before each of the watched calls of this thread and of the program that it executes.
func listen() (int, error) {
	const load, equal, ret = syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS, syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, syscall.BPF_RET | syscall.BPF_K
	filter := []syscall.SockFilter{{Code: load}}
	for nr := range watched {
		filter = append(filter, syscall.SockFilter{Code: equal, Jf: 1, K: nr}, syscall.SockFilter{Code: ret, K: returnAsk})
	}
	filter = append(filter, syscall.SockFilter{Code: ret, K: returnAllow})
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, noNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return 0, errno
	}
	fd, _, errno := syscall.RawSyscall(sysSeccomp, setModeFilter, newListener, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}

// gates returns why this system does not support gates, or nil.
func gates() error {
	fd := -1
	out := make(chan error)
	go func() { // on a thread that ends with the goroutine
		runtime.LockOSThread()
		var err error
		fd, err = listen()
		out <- err
	}()
	err := <-out
	if err == nil {
		_ = syscall.Close(fd)
	}
	return err
}

// before makes a command run behind the gate. The command must not be started yet.
func (g *gate) before(cmd *exec.Cmd) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	g.ours, g.theirs, g.end = os.NewFile(
		uintptr(pair[0]), "gate",
	), os.NewFile(uintptr(pair[1]), "gate"), make(chan struct{})
	cmd.Env = append(cmd.Env, gateEnv+"="+cmd.Path)
	cmd.Path = self
	cmd.ExtraFiles = []*os.File{g.theirs}
	return nil
}

// watch answers the kernel's requests until carrick has ended.
func (g *gate) watch() error {
	defer g.ours.Close()
	_ = g.theirs.Close()
	rights := make([]byte, syscall.CmsgSpace(4))
	_, n, _, _, err := syscall.Recvmsg(int(g.ours.Fd()), make([]byte, 1), rights, 0)
	if err != nil {
		return err
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) == 0 {
		return fmt.Errorf("carrick was not started: %v", err)
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	g.ended.Go(func() {
		defer syscall.Close(fds[0])
		for g.answer(fds[0]) {
		}
	})
	return nil
}

type request struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    uint32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type answered struct {
	id    uint64
	value int64
	err   int32
	flags uint32
}

// answer waits for one call and allows it unless carrick was killed. If there are no more calls, it returns false.
func (g *gate) answer(fd int) bool {
	type pollFD struct {
		fd              int32
		events, revents int16
	}
	const in, patience = 1, 50 // milliseconds
	p := pollFD{fd: int32(fd), events: in}
	_, _, _ = syscall.Syscall(syscall.SYS_POLL, uintptr(unsafe.Pointer(&p)), 1, patience)
	if p.revents&in == 0 {
		select {
		case <-g.end:
			return false
		default:
			return true
		}
	}
	var r request
	if _, _, errno := syscall.Syscall(
		syscall.SYS_IOCTL, uintptr(fd), receiveRequest, uintptr(unsafe.Pointer(&r)),
	); errno != 0 {
		return true
	}
	if c, ours := g.change(r); ours && !g.ask(c) {
		return true
	}
	a := answered{id: r.id, flags: goOn}
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), sendAnswer, uintptr(unsafe.Pointer(&a)))
	return true
}

// change returns what a call changes under the root.
func (g *gate) change(r request) (fileChange, bool) {
	c := fileChange{call: watched[r.nr]}
	name, folder := r.args[1], int32(r.args[0])
	if c.call == "rename" {
		folder, name = int32(r.args[2]), r.args[3]
	}
	at, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", r.pid, folder))
	rest, under := strings.CutPrefix(at, g.root)
	if err != nil || !under || rest != "" && rest[0] != '/' {
		return c, false
	}
	c.folder = filepath.Clean("/" + rest)
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", r.pid))
	if err != nil {
		return c, true
	}
	defer memory.Close()
	text := make([]byte, 255)
	n, _ := memory.ReadAt(text, int64(name))
	c.name, _, _ = strings.Cut(string(text[:n]), "\x00")
	if c.call == "unlink" && r.args[2]&removeFolder == 0 { // fails for a directory; a second call removes it
		info, err := os.Lstat(filepath.Join(at, c.name))
		return c, err == nil && !info.IsDir()
	}
	return c, true
}
