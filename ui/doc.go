// Package ui is the interactive wizard. It shows a [engine.Session] live, asks the questions of its guide, and applies
// and undoes what the user confirmed.
//
// It is the only package that imports Charm's libraries. It does not depend on guides, client-go or clusters.
// Everything goes through packages engine and model. The displayed state is in package model, which the line-based
// wizard shares. Update and View never block. Everything that can take time is a command, including each probe of a
// cell. The package has no goroutines, channels or mutexes.
//
// Read in this order: app.go (how messages reach their receiver), keys.go (the table of keys), step.go (the screen of a
// step).
package ui
