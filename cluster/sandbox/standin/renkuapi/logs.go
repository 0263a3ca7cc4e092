// What Renku's services log when they load kubeconfigs (k8s/config.py get_clusters). The messages are upstream's. The
// prefix with time, level and logger name is a guess: no source was read. The first line of each log says that the
// sandbox wrote it.

package renkuapi

import (
	"fmt"
	"strings"
	"time"
)

const (
	loggerName = "renku_data_services.k8s.config"
	logTime    = "2006-01-02 15:04:05,000"
)

type journal struct {
	now   func() time.Time
	lines strings.Builder
}

func newJournal(app string, now func() time.Time) *journal {
	j := &journal{now: now}
	j.add("INFO", "stand-in", "No container runs here: the sandbox writes what %s would log about its kubeconfigs.", app)
	return j
}

func (j *journal) info(format string, args ...any) { j.add("INFO", loggerName, format, args...) }
func (j *journal) warn(format string, args ...any) { j.add("WARNING", loggerName, format, args...) }

func (j *journal) add(level, name, format string, args ...any) {
	fmt.Fprintf(&j.lines, "%s [%s] %s: %s\n", j.now().UTC().Format(logTime), level, name, fmt.Sprintf(format, args...))
}

func (j *journal) String() string { return j.lines.String() }
