package model

import (
	"errors"
	"os"
	"os/exec"
	"strings"
)

// Editor returns the user's editor with its arguments. If no editor is set or installed, Editor returns nil.
func Editor(getenv func(string) string) []string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		words := strings.Fields(getenv(name))
		if len(words) == 0 {
			continue
		}
		if _, err := exec.LookPath(words[0]); err == nil {
			return words
		}
	}
	return nil
}

// EditCommand returns the command that opens a file in the given editor.
func EditCommand(editor []string, path string) *exec.Cmd {
	return exec.Command(editor[0], append(editor[1:len(editor):len(editor)], path)...)
}

// DraftFile creates a file with the given text and returns its path. Only the user can read the file.
func DraftFile(text string) (string, error) {
	file, err := os.CreateTemp("", "carrick-*.yaml")
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}
