package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/interp"
)

const (
	notFound = interp.ExitStatus(127)
	wrong    = interp.ExitStatus(1)
)

// exec runs the built-in replacement for a program.
func (b *Box) exec(ctx context.Context, words []string) error {
	at := interp.HandlerCtx(ctx)
	run := map[string]func(context.Context, interp.HandlerContext, []string) error{
		"cat": b.cat, "ls": b.ls, "sleep": sleep, "seq": seq,
		"touch": b.each(func(root *os.Root, inside string) error {
			file, err := root.OpenFile(inside, os.O_CREATE|os.O_WRONLY, 0o666)
			if err != nil {
				return err
			}
			return file.Close()
		}),
		"mkdir":    b.each(func(root *os.Root, inside string) error { return root.MkdirAll(inside, 0o777) }),
		"rm":       b.each(func(root *os.Root, inside string) error { return root.RemoveAll(inside) }),
		"hostname": func(context.Context, interp.HandlerContext, []string) error { return say(at.Stdout, b.Host) },
		"date": func(context.Context, interp.HandlerContext, []string) error {
			return say(at.Stdout, time.Now().UTC().Format(time.UnixDate))
		},
		"sync": func(context.Context, interp.HandlerContext, []string) error { return nil },
	}[path.Base(words[0])]
	if run == nil {
		fmt.Fprintf(at.Stderr, "sh: %s: not found (stand-in: only a few programs are available)\n", words[0])
		return notFound
	}
	if err := run(ctx, at, words[1:]); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Fprintf(at.Stderr, "%s: %v\n", words[0], err)
		return wrong
	}
	return nil
}

func say(out io.Writer, text string) error {
	_, err := fmt.Fprintln(out, text)
	return err
}

// full returns the absolute container path for name.
func full(at interp.HandlerContext, name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(at.Dir, name)
}

func (b *Box) cat(ctx context.Context, at interp.HandlerContext, names []string) error {
	if len(names) == 0 && at.Stdin != nil {
		_, err := io.Copy(at.Stdout, at.Stdin)
		return err
	}
	for _, name := range names {
		file, err := b.open(ctx, full(at, name), os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		_, err = io.Copy(at.Stdout, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (b *Box) ls(ctx context.Context, at interp.HandlerContext, words []string) error {
	for _, name := range words {
		if strings.HasPrefix(name, "-") {
			continue
		}
		entries, err := b.list(ctx, full(at, name))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := say(at.Stdout, e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// each returns a program that calls do for every path argument. It ignores options.
func (b *Box) each(
	do func(root *os.Root, inside string) error,
) func(context.Context, interp.HandlerContext, []string) error {
	return func(_ context.Context, at interp.HandlerContext, words []string) error {
		for _, name := range words {
			if strings.HasPrefix(name, "-") {
				continue
			}
			if err := b.do("write", full(at, name), do); err != nil {
				return err
			}
		}
		return nil
	}
}

func sleep(ctx context.Context, _ interp.HandlerContext, words []string) error {
	if len(words) != 1 {
		return errors.New("sleep supports exactly one duration")
	}
	text := words[0]
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		text += "s"
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
		return nil
	}
}

func seq(_ context.Context, at interp.HandlerContext, words []string) error {
	from, to := 1, 0
	var err error
	switch len(words) {
	case 1:
		to, err = strconv.Atoi(words[0])
	case 2:
		var fault error
		from, err = strconv.Atoi(words[0])
		to, fault = strconv.Atoi(words[1])
		err = errors.Join(err, fault)
	default:
		err = errors.New("seq supports one or two numbers")
	}
	for n := from; err == nil && n <= to; n++ {
		err = say(at.Stdout, strconv.Itoa(n))
	}
	return err
}
