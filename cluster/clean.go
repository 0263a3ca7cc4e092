package cluster

import "carrick/cluster/clean"

// Clean makes text from outside fit to be shown: see package clean.
func Clean(text string) string { return clean.Text(text) }

// CleanName makes a name from a cluster fit to be shown within a line: see package clean.
func CleanName(name string) string { return clean.Name(name) }
