package steps

import (
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"sync"
	"time"

	"github.com/adrg/xdg"
)

// Audit is the log of what was changed: JSON lines of when, who, where, what;
// hashes, never content, never a secret. A nil Audit writes nothing.
type Audit struct {
	mu   sync.Mutex
	file *os.File
	who  string
}

// OpenAudit opens the log in the user's state folder ($XDG_STATE_HOME/carrick).
func OpenAudit() (*Audit, error) {
	path, err := xdg.StateFile(filepath.Join("carrick", "audit.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	who := ""
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	return &Audit{file: f, who: who}, nil
}

// Path is the file.
func (a *Audit) Path() string {
	if a == nil {
		return ""
	}
	return a.file.Name()
}

// Close closes the file.
func (a *Audit) Close() error {
	if a == nil {
		return nil
	}
	return a.file.Close()
}

func (a *Audit) write(s *Session, e Event) {
	if a == nil {
		return
	}
	line, err := json.Marshal(struct {
		Time    time.Time `json:"time"`
		User    string    `json:"user,omitempty"`
		Link    string    `json:"link"`
		Guide   string    `json:"guide"`
		Side    Side      `json:"side"`
		Context string    `json:"context,omitempty"`
		Step    string    `json:"step"`
		Action  string    `json:"action"`
		Verb    Verb      `json:"verb"`
		What    string    `json:"what"`
		Hash    string    `json:"hash,omitempty"`
	}{time.Now().UTC(), a.who, s.link.Name(), s.guide.Name, e.Side, s.ends[e.Side].Name, e.Step, e.Action, e.Verb, e.What, e.Hash})
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.file.Write(append(line, '\n')); err != nil {
		s.log.Error("audit log", "err", err)
	}
}
