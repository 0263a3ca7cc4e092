package stepstest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// isLog reports whether a machine writes the file automatically.
func isLog(name string) bool {
	return strings.HasPrefix(name, "/var/log/") || strings.HasSuffix(name, ".log")
}

// Files returns the files and directories of a machine, by path. The value is the mode. For a file, the content follows
// on the next lines. Logs are omitted.
func Files(t testing.TB, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, root)
		if err != nil || isLog(name) {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = fmt.Sprintf("%s\n%s", info.Mode(), data)
		}
		out[name] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// jwtText matches a token of a ServiceAccount or of a user.
var jwtText = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+`)

func (s *stage) tokens(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, root := range s.box.Hosts {
		for _, text := range Files(t, root) {
			out = append(out, jwtText.FindAllString(text, -1)...)
		}
	}
	return out
}

// wholeFiles fails the test if a file of a machine is half-written, or if a file that other users can read contains a
// secret.
func (s *stage) wholeFiles(t *testing.T) {
	t.Helper()
	known := s.secrets(t)
	for _, root := range s.box.Hosts {
		for name, text := range Files(t, root) {
			if strings.Contains(name, "/"+part) {
				t.Errorf("%s was left half-written", name)
			}
			mode, content, isFile := strings.Cut(text, "\n")
			for _, secret := range known {
				if isFile && !strings.HasSuffix(mode, "------") && strings.Contains(content, secret) {
					t.Errorf("%s has mode %s, and contains a secret", name, mode)
					break
				}
			}
		}
	}
}

// recordFolders lists the directories of carrick's records, innermost first.
var recordFolders = []string{"/var/lib/carrick/" + proofLink, "/var/lib/carrick"}

// dropEmpty removes empty record directories that did not exist before. carrick deletes the last record before its
// directory. If a run is killed in between, the directory remains, because no record names it any more.
func (s *stage) dropEmpty(t *testing.T, before map[string]string) {
	t.Helper()
	for side, root := range s.box.Hosts {
		for _, folder := range recordFolders {
			if _, was := before[side+" file "+folder]; was {
				continue
			}
			if err := os.Remove(filepath.Join(root, folder)); err == nil {
				t.Logf("a crash after the removal of the last record left this directory empty: %s", folder)
			}
		}
	}
}
