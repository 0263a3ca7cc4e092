package ui

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
)

// save writes a report to a new file in the working directory and shows the file's name.
func (a *app) save() tea.Cmd {
	return a.saveFile("report", "md", strings.Join(a.report(a.now()), "\n")+"\n")
}

func (a *app) saveText(kind, text string) tea.Cmd {
	return a.saveFile(kind, "txt", strings.TrimRight(text, "\n")+"\n")
}

// saveFile writes text to a new file in the working directory and shows the file's name. Only the user can read the
// file. An existing file is never overwritten.
func (a *app) saveFile(kind, ext, text string) tea.Cmd {
	name := "carrick-" + kind
	if a.live != nil {
		name = fmt.Sprintf("carrick-%s-%s", a.live.Session.Link().Name(), kind)
	}
	name = fmt.Sprintf("%s-%s", name, a.now().Format("20060102-150405"))
	text = a.plainText(text)
	return func() tea.Msg {
		saved, err := newFile(name, ext, text)
		if err != nil {
			return noticeMsg{err: fmt.Errorf("the %s was not saved: %w", kind, bare(err))}
		}
		return noticeMsg{text: "saved " + saved}
	}
}

// newFile writes text to a file with an unused name and returns that name. Two files in the same second get different
// names. If a write fails, it removes the incomplete file.
func newFile(name, ext, text string) (string, error) {
	for n := 1; ; n++ {
		path := name + "." + ext
		if n > 1 {
			path = fmt.Sprintf("%s-%d.%s", name, n, ext)
		}
		f, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, os.ErrExist) && n < 100 {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.WriteString(text)
		if err := errors.Join(err, f.Close()); err != nil {
			return "", errors.Join(err, os.Remove(path))
		}
		return path, nil
	}
}

// bare returns the reason for a file error without the file's name. The notice has only one line, and the user did not
// choose the name.
func bare(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
