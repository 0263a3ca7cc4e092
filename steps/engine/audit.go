package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"sync"
	"time"

	"github.com/adrg/xdg"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/linkfile"
)

// Audit is the log of changes. Each line is JSON with the time, the user, the object, the change and hashes. It never
// contains content or secrets. A nil Audit writes nothing.
type Audit struct {
	mu   sync.Mutex
	file *os.File
	who  string
}

// OpenAudit opens the log in the user's state directory ($XDG_STATE_HOME/carrick).
func OpenAudit() (*Audit, error) {
	path, err := xdg.StateFile(filepath.Join("carrick", "audit.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	f, err := OpenLog(path, os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	who := ""
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	return &Audit{file: f, who: who}, nil
}

// OpenLog opens a log file of this user for appending. If the file does not exist, OpenLog creates it with mode 0600.
// how contains additional flags for os.OpenFile. If the path is not a regular file, OpenLog returns an error. This
// includes symbolic links.
func OpenLog(path string, how int) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file; carrick does not follow links here", path)
	}
	return os.OpenFile(path, how|os.O_APPEND|os.O_CREATE|noFollow, 0o600)
}

// room is the minimum free disk space, in bytes, for the log records of a run.
const room = 16 << 10

// Room returns an error if there is not enough disk space for more records.
func (a *Audit) Room() error {
	if a == nil {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(a.file.Name()), ".room-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, room))
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
}

// Path returns the path of the log.
func (a *Audit) Path() string {
	if a == nil {
		return ""
	}
	return a.file.Name()
}

// Close closes the log.
func (a *Audit) Close() error {
	if a == nil {
		return nil
	}
	return a.file.Close()
}

// write appends an event completely or not at all.
func (a *Audit) write(s *Session, e steps.Event) error {
	if a == nil {
		return nil
	}
	line, err := json.Marshal(struct {
		Time    time.Time  `json:"time"`
		User    string     `json:"user,omitempty"`
		Link    string     `json:"link"`
		Guide   string     `json:"guide"`
		Side    steps.Side `json:"side"`
		Context string     `json:"context,omitempty"`
		Step    string     `json:"step"`
		Action  string     `json:"action"`
		Verb    steps.Verb `json:"verb"`
		What    string     `json:"what"`
		Hash    string     `json:"hash,omitempty"`
	}{
		time.Now().UTC(), a.who, s.link.Name(), s.guide.Name, e.Side, clean.Text(s.ends[e.Side].Name), clean.Text(e.Step),
		e.Action, e.Verb, clean.Text(e.What), e.Hash,
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.append(append(line, '\n')); err != nil {
		s.log.Error("audit log", "err", err)
		return fmt.Errorf("cannot write to the audit log %s: %w", a.file.Name(), linkfile.Cause(err))
	}
	return nil
}

// append adds a line. It terminates an incomplete line of another process, and truncates an incomplete line of its own.
func (a *Audit) append(line []byte) error {
	at, err := a.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	last := []byte{'\n'}
	if at > 0 {
		if _, err := a.file.ReadAt(last, at-1); err != nil {
			return err
		}
	}
	if last[0] != '\n' {
		line = append([]byte{'\n'}, line...)
	}
	n, err := a.file.Write(line)
	if err == nil {
		return nil
	}
	if info, statErr := a.file.Stat(); statErr == nil && n > 0 && info.Size() == at+int64(n) {
		err = errors.Join(err, a.file.Truncate(at))
	}
	return err
}

type deeds struct {
	done int
	lost error // why a change could not be recorded
}

func (s *Session) recording(say steps.Progress) (*deeds, steps.Progress) {
	r := &deeds{}
	return r, func(e steps.Event) {
		if e.Verb != "" {
			r.done++
			if err := s.audit.write(s, e); err != nil && r.lost == nil {
				r.lost = err
			}
		}
		if say != nil {
			say(e)
		}
	}
}
