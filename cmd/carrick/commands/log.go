package commands

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/adrg/xdg"

	"carrick/cluster/clean"
	"carrick/steps/engine"
)

// logged is the maximum size of the log file in bytes. Larger files are rotated.
const logged = 5 << 20

// logger returns a logger that writes to the user's state directory, and never to the screen.
func (a *app) logger() *slog.Logger {
	if a.log != nil {
		return a.log
	}
	a.log, a.logFile = slog.New(slog.DiscardHandler), io.Discard
	path, err := xdg.StateFile(filepath.Join("carrick", "carrick.log"))
	if err != nil {
		return a.log
	}
	how := os.O_WRONLY
	if info, err := os.Lstat(path); err == nil && info.Size() > logged {
		how |= os.O_TRUNC
	}
	f, err := engine.OpenLog(path, how)
	if err == nil {
		a.log, a.logFile = slog.New(logTo(f)), f
	}
	return a.log
}

// logTo returns a handler that writes log entries to w. Errors can contain text from a cluster, so it makes each value
// safe to display.
func logTo(w io.Writer) slog.Handler {
	return slog.NewTextHandler(w, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			switch a.Value.Kind() {
			case slog.KindString, slog.KindAny:
				a.Value = slog.StringValue(clean.Text(a.Value.String()))
			}
			return a
		},
	})
}
