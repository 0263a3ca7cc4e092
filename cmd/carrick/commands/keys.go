package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"carrick/cluster/clean"
	"carrick/cmd/carrick/exit"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/facts"
	"carrick/steps/linkfile"
)

// keyFlags select the keys that decrypt a facts file, and the expected key of its signer.
type keyFlags struct {
	identity, passphrase, signer string

	unsaved bool            // --signer is not in the link file yet
	told    facts.Keys      // keys derived from typed passphrases
	asked   map[string]bool // facts files whose passphrase carrick has already asked for
}

func (k *keyFlags) add(to *pflag.FlagSet) {
	to.StringVar(
		&k.identity, "identity", "",
		"file with the key that decrypts a facts file: an age identity, or an SSH private key",
	)
	to.StringVar(&k.passphrase, "passphrase-file", "", "file with the passphrase of an encrypted facts file")
	to.StringVar(
		&k.signer, "signer", "",
		"`fingerprint` of the key that signs the other admin's facts file (SHA256:…): confirms the key without a question",
	)
}

// confirm stores --signer in l as the confirmed signer of each side with a facts file.
func (k *keyFlags) confirm(l *linkfile.Link) error {
	if k.signer == "" {
		return nil
	}
	if !fingerprint.MatchString(k.signer) {
		return exit.Usagef(
			"--signer %q is not a fingerprint as carrick handover prints it: SHA256: and 43 characters", k.signer,
		)
	}
	for _, side := range steps.Sides {
		if s := l.Side(side); s.Facts != "" && s.Signer != k.signer {
			s.Signer, s.Taken, k.unsaved = k.signer, time.Time{}, true
		}
	}
	return nil
}

var fingerprint = regexp.MustCompile(`^SHA256:[A-Za-z0-9+/]{43}$`)

// signers asks the user to confirm the keys that signed the facts files, and saves the confirmed keys in the link file.
// If changes is false, it only prints the unconfirmed keys.
func (a *app) signers(ctx context.Context, s *engine.Session, changes, yes bool) error {
	list, err := s.Unconfirmed(ctx)
	if err != nil {
		return err
	}
	for _, k := range list {
		switch said := clean.Text(k.String()); {
		case !changes:
			fmt.Fprintf(a.err, "%s, then confirm it with --signer %s or when carrick apply asks\n", said, k.Fingerprint)
		case yes || !isTerminalStream(a.in):
			return exit.Usagef("nothing was changed: %s. If the key is theirs, add --signer %s", said, k.Fingerprint)
		default:
			fmt.Fprintf(a.err, "%s.\n", said)
			if err := a.confirm(false, k.Question()); err != nil {
				return err
			}
			if err := s.Confirm(k); err != nil {
				return err
			}
		}
	}
	if changes {
		return a.keepSigner(s)
	}
	return nil
}

func (a *app) keepSigner(s *engine.Session) error {
	if !a.keys.unsaved {
		return nil
	}
	a.keys.unsaved = false
	return s.Save()
}

// read returns the keys that decrypt the link's facts files. On a terminal, it asks for missing passphrases.
func (k *keyFlags) read(a *app, l *linkfile.Link) (facts.Keys, error) {
	var out facts.Keys
	if k.identity != "" {
		data, err := a.privateFile("--identity", k.identity)
		if err != nil {
			return nil, err
		}
		keys, err := facts.Identities(data)
		if err != nil {
			return nil, exit.Usagef("--identity %s: %w", k.identity, err)
		}
		out = append(out, keys...)
	}
	if k.passphrase != "" {
		data, err := a.privateFile("--passphrase-file", k.passphrase)
		if err != nil {
			return nil, err
		}
		keys, err := facts.Passphrase(string(bytes.TrimRight(data, "\r\n")))
		if err != nil {
			return nil, exit.Usagef("--passphrase-file %s: %w", k.passphrase, err)
		}
		return append(out, keys...), nil
	}
	if !a.onScreen {
		if err := k.ask(a, l); err != nil {
			return nil, err
		}
	}
	return append(out, k.told...), nil
}

// ask asks once for the passphrase of each facts file in the link. It does nothing without a terminal.
func (k *keyFlags) ask(a *app, l *linkfile.Link) error {
	for _, side := range steps.Sides {
		path := l.Side(side).Facts
		if path == "" || k.passphrase != "" || k.asked[path] {
			continue
		}
		keys, err := a.askPassphrase(l.File(path))
		if err != nil {
			return err
		}
		if k.asked == nil {
			k.asked = map[string]bool{}
		}
		k.asked[path], k.told = true, append(k.told, keys...)
	}
	return nil
}

// unlock remembers phrase if it decrypts the facts file, and returns an error otherwise.
func (k *keyFlags) unlock(path, phrase string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return exit.FileError(err)
	}
	f, err := facts.Decode(data)
	if err != nil {
		return err
	}
	keys, err := facts.Passphrase(phrase)
	if err != nil {
		return err
	}
	if err := f.Unseal(keys); err != nil {
		return errors.New("wrong passphrase")
	}
	k.told = append(k.told, keys...)
	return nil
}

func (a *app) privateFile(flag, path string) ([]byte, error) {
	data, err := a.secretFile(source{key: flag, file: path})
	if err != nil {
		return nil, exit.Usagef("%s %s: %w", flag, path, err)
	}
	return data, nil
}

// askPassphrase asks for a passphrase if the facts file is encrypted with one and there is a terminal. It ignores
// unreadable files, because the code that opens them later reports the error.
func (a *app) askPassphrase(path string) (facts.Keys, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil
	}
	f, err := facts.Decode(data)
	if err != nil || f.Sealed == nil || len(f.Sealed.For) != 1 || f.Sealed.For[0] != facts.ByPassphrase {
		return nil, nil
	}
	phrase, err := a.typed("Passphrase of " + path)
	if errors.Is(err, errNoInput) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return facts.Passphrase(phrase)
}

var errNoInput = errors.New("cannot ask without a terminal")

// typed prompts for a line and reads it without echo.
func (a *app) typed(what string) (string, error) {
	in, ok := a.in.(*os.File)
	if !ok || !isTerminal(in) {
		return "", errNoInput
	}
	fmt.Fprintf(a.err, "%s (not shown): ", clean.Text(what))
	b, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(a.err)
	return string(b), err
}
