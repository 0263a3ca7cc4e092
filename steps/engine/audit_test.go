package engine

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carrick/cluster/clustertest/cases"
	"carrick/cluster/clustertest/hostile"
	"carrick/steps"
	"carrick/steps/linkfile"
)

func auditIn(t *testing.T, dir string) (*Audit, *Session) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "audit.jsonl"), os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	a := &Audit{file: f, who: "me"}
	return a, NewSession(SessionOptions{
		Guide: &steps.Guide{
			Name: "kinds",
			Sides: map[steps.Side]steps.Role{
				steps.Local: {Name: "a", Kind: steps.Cluster}, steps.Remote: {Name: "b", Kind: steps.Cluster},
			},
		},
		Link: linkfile.New("kinds", "a"), Endpoints: map[steps.Side]Endpoint{steps.Local: {Name: hostile.All()}}, Audit: a,
	})
}

// Each record is one line, whatever the record contains and whatever the file contained before.
func TestHostileAuditLogHasALineARecord(t *testing.T) {
	cases.Run(t, "hostile", "audit log", func(t *testing.T) {
		dir := t.TempDir()
		a, s := auditIn(t, dir)
		if _, err := a.file.WriteString(`{"half a`); err != nil {
			t.Fatal(err)
		}
		for _, text := range hostile.Texts {
			if err := a.write(s, steps.Event{Verb: steps.Create, Side: steps.Local, What: text, Step: text}); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		lines := hostile.Lines(string(text))
		if len(lines) != len(hostile.Texts)+1 {
			t.Errorf("%d lines", len(lines))
		}
		for _, line := range lines[1:] {
			if !json.Valid([]byte(line)) {
				t.Errorf("no record: %.100q", line)
			}
		}
		if bad := hostile.Unfit(string(text)); bad != "" {
			t.Error(bad)
		}
	})
}

// If a change can't be recorded, the run stops with an error and leaves no incomplete line.
func TestHostileAuditLogOnAFullDisk(t *testing.T) {
	cases.Run(t, "hostile", "audit log, full disk", func(t *testing.T) {
		dir := hostile.Disk(t)
		a, s := auditIn(t, dir)
		if err := a.Room(); err != nil {
			t.Fatalf("on an empty disk: %v", err)
		}
		hostile.Fill(t, dir)
		if err := a.Room(); err == nil {
			t.Error("there is room on a full disk")
		}
		before := -1
		deeds, say := s.recording(nil)
		for range 100 {
			say(steps.Event{Verb: steps.Create, Side: steps.Local, What: strings.Repeat("x", 900)})
			if deeds.lost != nil {
				break
			}
			info, _ := a.file.Stat()
			before = int(info.Size())
		}
		if deeds.lost == nil || !strings.Contains(deeds.lost.Error(), "no space left") ||
			!strings.Contains(deeds.lost.Error(), "audit.jsonl") {
			t.Fatalf("it says %v", deeds.lost)
		}
		text, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
		if err != nil || len(text) != max(before, 0) {
			t.Errorf("%d bytes, and there were %d before the last: %v", len(text), before, err)
		}
		if files := hostile.Files(t, dir); len(files) != 1 {
			t.Errorf("left: %v", files)
		}
	})
}
