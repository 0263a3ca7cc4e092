package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"carrick/cluster/failure"
	"carrick/cluster/tracked"
)

// pollEvery is the interval at which a file is checked if carrick cannot watch its directory.
const pollEvery = 5 * time.Second

// trackedFile is a file or a directory whose changes are tracked by traces.
type trackedFile struct {
	version tracked.Version
	mu      sync.Mutex
	blind   error     // why its directory cannot be watched; nil: it is watched
	read    time.Time // time of the last check
}

func (f *trackedFile) Changes() *tracked.Version { return &f.version }

func (f *trackedFile) Heard() (at time.Time, polled bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blind != nil {
		return f.read, true
	}
	return time.Now(), false
}

func (f *trackedFile) Unwatched() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.blind
}

// watch watches the directories of the tracked files. Watching the files would not suffice, because creating a file, or
// replacing it with a rename, is an event of its directory.
type watch struct {
	mu      sync.Mutex
	watcher *fsnotify.Watcher // nil: not created yet
	refused error             // why watcher cannot be created
	said    sync.Once         // logs only once that files cannot be watched
	closed  bool
	done    sync.WaitGroup
	folders map[string][]*trackedFile // tracked files affected by an event at "<directory>/<name>"
	byPath  map[string]*trackedFile   // by path on the host
	watched map[string]bool           // directories that are watched
}

// track records in the trace of ctx that a file is about to be read.
func (h *Host) track(ctx context.Context, name string) {
	if tracked.TraceOf(ctx) == nil {
		return
	}
	h.trackAt(ctx, name, h.spots(name))
}

// anyName stands for every file name in the keys of watch.folders.
const anyName = "*"

// trackFolder records in the trace of ctx that the names in a directory are about to be read.
func (h *Host) trackFolder(ctx context.Context, name string) {
	if tracked.TraceOf(ctx) == nil {
		return
	}
	spots := h.spots(name)
	if info, err := h.stat(name); err == nil && info.IsDir() {
		spots = append(spots, filepath.Join(spots[len(spots)-1], anyName))
	}
	h.trackAt(ctx, strings.TrimRight(name, "/")+"/", spots)
}

func (h *Host) trackAt(ctx context.Context, name string, spots []string) {
	f := h.watch.file(name)
	blind := explainWatch(h.watch.cover(f, spots))
	f.mu.Lock()
	f.blind, f.read = blind, time.Now()
	f.mu.Unlock()
	tracked.Note(ctx, f, f.version.Now())
	if blind != nil {
		h.watch.said.Do(func() {
			if log := h.options.Clusters.Log; log != nil {
				log.Warn(blind.Error(), "host", h.Root, "instead", "read every "+pollEvery.String())
			}
		})
		tracked.Expires(ctx, time.Now().Add(pollEvery))
	}
}

// spots returns the paths on this machine where a change can affect the target of name: all symlinks on the path, and
// the file itself or the first missing directory.
func (h *Host) spots(name string) []string {
	done, there, links, err := h.follow(name)
	if err != nil {
		done, there = parts(name), 0
		for there < len(done) && h.isDir(done[:there+1]) {
			there++
		}
	}
	var out []string
	for _, link := range links {
		out = append(out, filepath.Join(h.Root, join(link)))
	}
	done = done[:min(there+1, len(done))]
	return append(out, filepath.Join(h.Root, join(done)))
}

func (h *Host) isDir(steps []string) bool {
	info, err := h.files.Stat(join(steps))
	return err == nil && info.IsDir()
}

// inotifyLimits lists Linux's limits for watching files: the error when a limit is reached, the name of the limit below
// fs.inotify, and a value that is sufficient for many programs.
var inotifyLimits = []struct {
	errno  syscall.Errno
	name   string
	enough int
}{
	{syscall.EMFILE, "max_user_instances", 512},
	{syscall.ENOSPC, "max_user_watches", 524288},
}

// explainWatch explains why files cannot be watched. If a limit was reached, the error names the limit and the command
// that raises it.
func explainWatch(err error) error {
	for _, l := range inotifyLimits {
		if !errors.Is(err, l.errno) {
			continue
		}
		value, readErr := os.ReadFile("/proc/sys/fs/inotify/" + l.name)
		if readErr != nil {
			break // not on Linux: there the error has another meaning
		}
		return fmt.Errorf("watch files: all inotify %s are in use, and fs.inotify.%s is %s (%w); "+
			"run: sudo sysctl fs.inotify.%[2]s=%[5]d",
			strings.TrimPrefix(l.name, "max_user_"), l.name, bytes.TrimSpace(value), err, l.enough)
	}
	if err != nil {
		return fmt.Errorf("watch files: %w", err)
	}
	return nil
}

func (w *watch) file(name string) *trackedFile {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.byPath[name]
	if f == nil {
		f = &trackedFile{}
		w.byPath[name] = f
	}
	return f
}

// cover watches the directories of the given paths, so that an event at one of the paths counts as a change of f. It
// returns an error if a directory cannot be watched.
func (w *watch) cover(f *trackedFile, spots []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.start(); err != nil {
		return err
	}
	for _, spot := range spots {
		folder := filepath.Dir(spot)
		if !w.watched[folder] {
			if err := w.watcher.Add(folder); err != nil {
				return err
			}
			w.watched[folder] = true
		}
		if !slices.Contains(w.folders[spot], f) {
			w.folders[spot] = append(w.folders[spot], f)
		}
	}
	return nil
}

func (w *watch) start() error {
	if w.closed {
		return failure.ErrClosed
	}
	if w.watcher != nil || w.refused != nil {
		return w.refused
	}
	w.watcher, w.refused = fsnotify.NewWatcher()
	if w.refused != nil {
		return w.refused
	}
	w.watched = map[string]bool{}
	w.done.Go(func() { w.listen(w.watcher) })
	return nil
}

func (w *watch) listen(watcher *fsnotify.Watcher) {
	for {
		select {
		case event, open := <-watcher.Events:
			if !open {
				return
			}
			w.tell(event)
		case _, open := <-watcher.Errors:
			if !open {
				return
			}
			// Events were lost, so any file might have changed.
			w.tellAll()
		}
	}
}

func (w *watch) tell(event fsnotify.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := filepath.Clean(event.Name)
	for _, f := range slices.Concat(w.folders[name], w.folders[filepath.Join(filepath.Dir(name), anyName)]) {
		f.version.Bump()
	}
	if !w.watched[name] || !event.Has(fsnotify.Remove|fsnotify.Rename) {
		return
	}
	// The directory was deleted, so it is no longer watched.
	delete(w.watched, name)
	_ = w.watcher.Remove(name)
	for spot, files := range w.folders {
		if filepath.Dir(spot) != name {
			continue
		}
		for _, f := range files {
			f.version.Bump()
		}
	}
}

func (w *watch) tellAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.byPath {
		f.version.Bump()
	}
}

func (w *watch) close() {
	w.mu.Lock()
	w.closed = true
	watcher := w.watcher
	w.mu.Unlock()
	if watcher != nil {
		_ = watcher.Close()
		w.done.Wait()
	}
}
