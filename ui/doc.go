// Package ui is the interactive wizard. It shows the live state of an [engine.Session], asks the questions of the
// guide, and applies and undoes the changes that the user confirms.
//
// It is the only package that imports Charm's libraries. It does not depend on guides, client-go or clusters. It
// reaches clusters only through packages engine and model. The displayed state is in package model, which the
// line-based wizard shares. Update and View never block. Everything that can take time, including each probe of a cell,
// runs as a bubbletea command. The package starts no goroutines and uses no channels or mutexes.
//
// Read in this order: app.go (how messages reach their receiver), keys.go (the key table), step.go (the screen of a
// step).
package ui
