package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"carrick/cluster/clean"
	"carrick/cmd/carrick/exit"
	"carrick/cmd/carrick/plain"
)

// FaultName matches valid fault names.
var FaultName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// Fault is a misconfiguration that the sandbox can inject before the wizard starts.
type Fault struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Late  bool   `json:"late"` // it breaks a finished set-up, which the demo creates first
}

// Faults returns the sandbox's faults for a guide.
func (b *Sandbox) Faults(guide string) ([]Fault, error) {
	got, err := b.Tell("faults " + guide)
	switch {
	case IsUnknownCommand(err), err == nil && len(got.Faults) == 0:
		return nil, exit.Usagef("this demo has no faults")
	case err != nil:
		return nil, fmt.Errorf("list the faults of %s: %w", guide, err)
	}
	return got.Faults, nil
}

// Fault returns the fault with the given name, or a usage error if it does not exist.
func (b *Sandbox) Fault(guide, name string) (Fault, error) {
	faults, err := b.Faults(guide)
	if err != nil {
		return Fault{}, err
	}
	return FaultOf(faults, guide, name)
}

// FaultOf returns the fault with the given name. If it does not exist, the usage error lists all faults.
func FaultOf(faults []Fault, guide, name string) (Fault, error) {
	for _, f := range faults {
		if f.Name == name {
			return f, nil
		}
	}
	return Fault{}, exit.Usagef("guide %s has no fault %q; its faults are:\n%s", guide, name, FaultTable(faults))
}

// FaultTable formats faults, one per line.
func FaultTable(faults []Fault) string {
	var lines []string
	for _, f := range faults {
		lines = append(
			lines,
			strings.TrimRight(
				fmt.Sprintf("%-28s %s", plain.OneLine(clean.Text(f.Name)), plain.OneLine(clean.Text(f.Title))), " ",
			),
		)
	}
	return strings.Join(lines, "\n")
}

// completeWithin limits how long shell completion waits for the sandbox program.
const completeWithin = 2 * time.Second

// KnownFaults returns the faults that the sandbox program has for a guide. It returns nil if the program does not exist
// or is too old to list faults.
func KnownFaults(ctx context.Context, guide string) []Fault {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	box := exec.CommandContext(ctx, filepath.Join(filepath.Dir(self), Program), "--faults", guide)
	box.Stderr = io.Discard
	said, err := box.Output()
	var got answer
	if err != nil || json.Unmarshal(said, &got) != nil {
		return nil
	}
	return got.Faults
}
