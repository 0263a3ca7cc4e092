//go:build !linux

package plane

// LackingWatches returns nil: only Linux limits inotify.
func LackingWatches(int) error { return nil }
