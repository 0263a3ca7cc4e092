package main

import (
	"os"
	"testing"

	"carrick/assets"
	"carrick/steps"
)

func readFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	return string(b), err
}

func TestGuidesAreValid(t *testing.T) {
	if err := steps.Validate(guides(), assets.FS); err != nil {
		t.Fatal(err)
	}
}
