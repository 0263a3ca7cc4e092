// Command cast records carrick on a pseudo-terminal as an asciicast (version 2). It quits carrick when the screen shows
// TEXT:
//
//	cast -o FILE -title TITLE -until TEXT -- PROGRAM ARG …
//
// carrick runs with a minimal environment, so that the recording contains nothing from this machine.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

func main() {
	var o options
	flag.StringVar(&o.out, "o", "", "the file to write")
	flag.StringVar(&o.title, "title", "", "title of the recording")
	flag.StringVar(&o.until, "until", "q leaves", "text that the screen shows at the end")
	flag.StringVar(&o.never, "never", "space continues", "text that must not appear on the screen")
	flag.StringVar(&o.leave, "leave", "q", "the keys typed after the recording, to quit")
	flag.IntVar(&o.columns, "columns", 80, "columns of the terminal")
	flag.IntVar(&o.rows, "rows", 24, "rows of the terminal")
	flag.DurationVar(&o.within, "within", 20*time.Minute, "how long the recording may take")
	flag.DurationVar(&o.starting, "starting", 2*time.Second, "the longest pause before the program's screen is up")
	flag.DurationVar(&o.reading, "reading", 5*time.Second, "the longest pause after the screen is up, to read captions")
	flag.Parse()
	if o.out == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: cast -o FILE [flags] -- PROGRAM [ARG …]")
		os.Exit(2)
	}
	if err := record(o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "cast:", err)
		os.Exit(1)
	}
}

type options struct {
	out, title                string
	until, never, leave       string
	columns, rows             int
	within, starting, reading time.Duration
}

func record(o options, args []string) error {
	path, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "cast-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = home
	cmd.Env = []string{
		"TERM=xterm-256color", "LANG=C.UTF-8", "PATH=/usr/bin:/bin", "TMPDIR=/tmp",
		"HOME=" + home, "XDG_STATE_HOME=" + home, "XDG_CACHE_HOME=" + home,
	}
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: uint16(o.rows), Cols: uint16(o.columns)})
	if err != nil {
		return err
	}
	defer terminal.Close()
	t := &tape{pause: o.starting}
	t.add(0, []byte("$ "+filepath.Base(args[0])+" "+strings.Join(args[1:], " ")+"\r\n"))
	err = watch(o, terminal, t)
	_, typed := io.WriteString(terminal, o.leave)
	go func() { _, _ = io.Copy(io.Discard, terminal) }()
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if err = errors.Join(err, typed, cmd.Wait()); err != nil {
		return err
	}
	return t.write(o)
}

// watch records the terminal's output until the final text is on screen.
func watch(o options, terminal *os.File, t *tape) error {
	screen := vt.NewEmulator(o.columns, o.rows)
	go func() { _, _ = io.Copy(terminal, screen) }() // the terminal's replies
	late := time.Now().Add(o.within)
	began := time.Now()
	buf, told := make([]byte, 1<<16), ""
	for {
		if err := terminal.SetReadDeadline(late); err != nil {
			return err
		}
		n, err := terminal.Read(buf)
		if err != nil {
			return fmt.Errorf("the screen never showed %q: %w; the last was\n%s", o.until, err, screen.String())
		}
		_, _ = screen.Write(buf[:n])
		if screen.IsAltScreen() {
			t.pause = o.reading
		}
		t.add(time.Since(began), buf[:n])
		now := screen.String()
		switch {
		case strings.Contains(now, o.until):
			return nil
		case strings.Contains(now, o.never):
			return fmt.Errorf("the screen waits for a user:\n%s", now)
		}
		if said := step.FindString(now); said != told {
			told = said
			fmt.Fprintf(os.Stderr, "%s: %s\n", time.Since(began).Round(time.Second), said)
		}
	}
}

// step matches the progress in the headline of the screen, such as "step 3 of 8".
var step = regexp.MustCompile(`step [0-9]+ of [0-9]+|summary`)
