package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"carrick/cluster/clean"
	"carrick/cluster/masked"
	"carrick/cmd/carrick/exit"
	"carrick/steps"
)

// maxSecret is the size limit in bytes, far larger than any secret in a guide.
const maxSecret = 1 << 20

// secrets are the answers from --secret.
type secrets struct {
	flags   []string
	sources []source
	stdin   bool // one of the sources is standard input
	values  map[string]masked.Value
}

func (s *secrets) add(to *pflag.FlagSet) {
	to.StringArrayVar(&s.flags, "secret", nil, "answer to a secret question: `KEY=@FILE`, or KEY=- for standard input")
}

type source struct{ key, file string } // if file is "", the source is standard input

func (s source) String() string {
	if s.file == "" {
		return "--secret " + s.key + "=-"
	}
	return "--secret " + s.key + "=@" + s.file
}

// parse parses the flags. Its errors do not repeat malformed flags, because these can contain the secret itself.
func (s *secrets) parse() error {
	seen := map[string]bool{}
	for i, flag := range s.flags {
		key, from, ok := strings.Cut(flag, "=")
		file, isFile := strings.CutPrefix(from, "@")
		switch {
		case !ok || key == "":
			return exit.Usagef("--secret number %d is neither KEY=@FILE nor KEY=-", i+1)
		case from != "-" && !isFile:
			return exit.Usagef(
				"--secret number %d contains a value: a secret in a flag is visible in the process list and in the shell's "+
					"history. Put it into a file and write KEY=@FILE, or KEY=- for standard input",
				i+1,
			)
		case isFile && file == "":
			return exit.Usagef("--secret %s=@ has no file name", key)
		case seen[key]:
			return exit.Usagef("--secret %s is given twice", key)
		case from == "-" && s.stdin:
			return exit.Usagef(
				"--secret %s=-: another --secret already reads standard input; pass this secret as %s=@FILE", key, key,
			)
		}
		if !isFile {
			file = ""
		}
		seen[key] = true
		s.stdin = s.stdin || from == "-"
		s.sources = append(s.sources, source{key, file})
	}
	return nil
}

// needYes returns an error if a secret comes from standard input and yes is false. carrick could not read a
// confirmation from standard input as well.
func (s *secrets) needYes(yes bool) error {
	if s.stdin && !yes {
		return exit.Usagef(
			"--secret KEY=- reads standard input, so carrick cannot ask for confirmation: add --yes, or pass the secret " +
				"as KEY=@FILE",
		)
	}
	return nil
}

// of returns the secrets by question key. It returns an error if the guide has no secret question with one of the keys.
func (s *secrets) of(g *steps.Guide) (map[string]masked.Value, error) {
	for key := range s.values {
		if _, err := secretQuestion(key, []*steps.Guide{g}); err != nil {
			return nil, err
		}
	}
	return s.values, nil
}

// readSecrets reads all sources in --secret. guides are the guides that can ask for these secrets.
func (a *app) readSecrets(ctx context.Context, guides ...*steps.Guide) error {
	var asked []*steps.Question
	for _, s := range a.secrets.sources { // check all names before reading any source
		q, err := secretQuestion(s.key, guides)
		if err != nil {
			return err
		}
		asked = append(asked, q)
	}
	a.secrets.values = map[string]masked.Value{}
	for i, s := range a.secrets.sources {
		v, err := a.readSecret(ctx, s, asked[i])
		if err != nil {
			return err
		}
		a.secrets.values[s.key] = v
	}
	return nil
}

// secretQuestion returns the secret question with the given key. It returns an error if the key is unknown or the
// question is not secret.
func secretQuestion(key string, guides []*steps.Guide) (*steps.Question, error) {
	var known, names []string
	for _, g := range guides {
		names = append(names, g.Name)
		if q, _ := g.Question(key); q != nil && q.Secret {
			return q, nil
		} else if q != nil {
			return nil, exit.Usagef("--secret %s: this answer is not secret; set it in the link file, under answers", key)
		}
		for i := range g.Steps {
			for _, q := range g.Steps[i].Ask {
				if q.Secret {
					known = append(known, q.Key)
				}
			}
		}
	}
	if len(known) == 0 {
		return nil, exit.Usagef("--secret %s: guide %s has no secret answers", key, strings.Join(names, ", "))
	}
	return nil, exit.Usagef(
		"--secret %s: guide %s has no such question; its secret answers are: %s", key, strings.Join(names, ", "),
		strings.Join(known, ", "),
	)
}

func (a *app) readSecret(ctx context.Context, s source, q *steps.Question) (masked.Value, error) {
	read := func() ([]byte, error) { return a.secretFile(s) }
	if s.file == "" {
		read = func() ([]byte, error) { return io.ReadAll(io.LimitReader(a.in, maxSecret+1)) }
		if in, ok := a.in.(*os.File); ok && isTerminal(in) {
			state, err := term.GetState(int(in.Fd()))
			if err != nil {
				return masked.Value{}, exit.Usagef("%s: %w", s, err)
			}
			defer func() { _ = term.Restore(int(in.Fd()), state) }() // also after ctrl+c
			read = func() ([]byte, error) { return a.typedSecret(in, q) }
		}
	}
	raw, err := beforeEnd(ctx, read)
	if ctx.Err() != nil {
		return masked.Value{}, ctx.Err()
	}
	if err != nil {
		return masked.Value{}, exit.Usagef("%s: %w", s, err)
	}
	text := string(bytes.TrimRight(raw, "\r\n"))
	switch {
	case text == "":
		return masked.Value{}, exit.Usagef("%s: the secret is empty", s)
	case len(raw) > maxSecret:
		return masked.Value{}, exit.Usagef("%s: the secret is larger than 1 MiB", s)
	}
	if _, err := q.Accept(text); err != nil {
		if q.Kind != steps.Text || strings.Contains(err.Error(), text) {
			err = fmt.Errorf("its content is not of type %s", q.Kind)
		}
		return masked.Value{}, exit.Usagef("%s: %w", s, err)
	}
	return masked.New(text), nil
}

// beforeEnd calls read, and returns early if ctx is canceled. Reading from a pipe can block indefinitely.
func beforeEnd(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type got struct {
		b   []byte
		err error
	}
	done := make(chan got, 1)
	go func() {
		b, err := read()
		done <- got{b, err}
	}()
	select {
	case g := <-done:
		return g.b, g.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// secretFile reads a file. It prints a warning if other users can read the file.
func (a *app) secretFile(s source) ([]byte, error) {
	path := s.file
	if rest, ok := strings.CutPrefix(path, "~/"); ok { // shells do not expand ~/ after @
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, rest)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, exit.FileError(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, exit.FileError(err)
	}
	if info.IsDir() {
		return nil, errors.New("it is a directory, not a file")
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&0o044 != 0 {
		fmt.Fprintf(
			a.err, "warning: %s: other users on this machine can read this file; chmod 600 %s\n", clean.Text(s.String()),
			clean.Text(path),
		)
	}
	return io.ReadAll(io.LimitReader(f, maxSecret+1))
}

func (a *app) typedSecret(in *os.File, q *steps.Question) ([]byte, error) {
	fmt.Fprintf(a.err, "%s (not shown): ", q.Title)
	b, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(a.err)
	return b, err
}
