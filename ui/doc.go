// Package ui is the wizard on a terminal: it shows a [engine.Session] live, asks
// the questions of its guide, and applies and takes back what was confirmed.
//
// It is the only package that knows Charm's libraries. It knows no guide, no
// client-go and no cluster; all that it shows and does goes through package
// steps. What is shown is package model's, which the lines share. Update and
// View never block: whatever may take time is a command, and so is each turn of
// the chain that keeps a cell current. There is no goroutine, channel or mutex
// here.
//
// Read in this order: app.go (how messages find their receiver), keys.go (the
// one table of keys), step.go (the screen of a step).
package ui
