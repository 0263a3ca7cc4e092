//go:build !linux

package plane

// LackingWatches returns nil, because only Linux limits inotify instances.
func LackingWatches(int) error { return nil }
