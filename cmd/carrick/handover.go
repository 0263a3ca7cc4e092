package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/facts"
)

// handoverFlags are those of carrick handover.
type handoverFlags struct {
	side, file string
	to         []string
	phrase     bool
	good       time.Duration
}

// longestGood is how long a file of facts may be good at most.
const longestGood = 30 * 24 * time.Hour

func (a *app) handover() *cobra.Command {
	var f handoverFlags
	cmd := &cobra.Command{
		Use: "handover LINK", Short: "Facts of one side, in a file for the admin of the other",
		Long: `Writes what the admin of the other side needs to go on without your credentials:
facts, answers and verdicts of your side. The other admin names the file in the
link file, in place of a context:

  remote: {facts: FILE}

Secrets are sealed with age for who is named with --to, or by a passphrase; else
they are left out and named. It changes nothing in a cluster.`,
		Example: `  carrick handover milan-rome.yaml -o rome.facts
  carrick handover milan-rome.yaml --to "$(cat milan-admin.pub)"`,
		Args: a.needLink,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runHandover(cmd.Context(), args[0], f)
		},
	}
	a.secrets.add(cmd.Flags())
	cmd.Flags().StringVar(&f.side, "side", "", "the side whose facts to hand over (default: the one that is here)")
	cmd.Flags().StringVarP(&f.file, "output", "o", "", "file to write (default: LINK-SIDE.facts beside the link file)")
	cmd.Flags().StringArrayVar(&f.to, "to", nil, "who may read the secrets: an age recipient (age1…) or an SSH public key; @FILE for a file of them")
	cmd.Flags().BoolVar(&f.phrase, "passphrase", false, "seal the secrets by a passphrase, from --passphrase-file or asked for")
	cmd.Flags().DurationVar(&f.good, "for", 24*time.Hour, "how long the file is good")
	return cmd
}

func (a *app) runHandover(ctx context.Context, link string, f handoverFlags) error {
	if f.good <= 0 || f.good > longestGood {
		return usage("--for %s: more than nothing and at most %s", f.good, longestGood)
	}
	to, err := a.recipients(f)
	if err != nil {
		return err
	}
	s, err := a.open(ctx, link, cluster.Options{Once: true})
	if err != nil {
		return err
	}
	defer s.Close()
	side, err := handedSide(s, f.side)
	if err != nil {
		return err
	}
	role := s.Guide().Sides[side].Name
	if f.file == "" {
		f.file = filepath.Join(filepath.Dir(link), s.Link().Name()+"-"+role+".facts")
	}
	if err := ownFacts(f.file, s); err != nil {
		return err
	}
	h, err := s.Handover(ctx, side, f.good)
	if err != nil {
		return err
	}
	data, err := h.Sealed(to)
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(f.file, data, 0o600, renameio.IgnoreUmask()); err != nil {
		return fmt.Errorf("write %s: %w", f.file, err)
	}
	a.sayHanded(f.file, h, to)
	return nil
}

// sayHanded says what was written, and what is left to do.
func (a *app) sayHanded(path string, h *steps.Handover, to facts.Recipients) {
	f := h.File
	fmt.Fprintln(a.out, path)
	fmt.Fprintf(a.err, "%d facts of the %s, good until %s; fingerprint %s\n", len(f.Facts), f.Role, f.Until.Local().Format("2 Jan 15:04"), f.Fingerprint())
	var names []string
	for name := range h.Secrets {
		names = append(names, name)
	}
	slices.Sort(names)
	switch {
	case len(names) > 0 && len(to.Names) == 0:
		fmt.Fprintf(a.err, "left out, because nobody was named who may read it: %s. Run it again with --to or --passphrase\n", strings.Join(names, ", "))
	case len(names) > 0:
		fmt.Fprintf(a.err, "sealed for %s: %s\n", strings.Join(to.Names, ", "), strings.Join(names, ", "))
	}
	for _, name := range sortedNames(f.Unread) {
		fmt.Fprintf(a.err, "not in it: %s: %s\n", name, f.Unread[name])
	}
	peer := steps.Side(f.Side)
	fmt.Fprintf(a.err, "Give it to the other admin, whose link file is to say:\n  guide: %s\n  metadata: {name: %s}\n  %s: {facts: %s}\n", f.Guide, f.Link, peer, filepath.Base(path))
}

func sortedNames(m map[string]string) []string {
	var out []string
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// handedSide is the side whose facts are asked for: that of --side, else the
// only one that is here.
func handedSide(s *steps.Session, flag string) (steps.Side, error) {
	side, err := sideFlag(flag, s.Guide())
	if err != nil || side != "" {
		return side, err
	}
	var here []steps.Side
	for _, side := range steps.Sides {
		if e := s.End(side); e.Cluster != nil || e.Host != nil {
			here = append(here, side)
		}
	}
	if len(here) != 1 {
		g := s.Guide()
		return "", usage("whose facts? --side %s or --side %s", g.Sides[steps.Local].Name, g.Sides[steps.Remote].Name)
	}
	return here[0], nil
}

// ownFacts refuses to write over anything but an earlier file of facts of the
// same link.
func ownFacts(path string, s *steps.Session) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return usage("%s: %w", path, plainOpen(err))
	}
	if !info.Mode().IsRegular() {
		return usage("%s is not a plain file: name another one with -o", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return usage("%s: %w", path, plainOpen(err))
	}
	if f, err := facts.Decode(data); err != nil || f.Link != s.Link().Name() || f.Guide != s.Guide().Name {
		return usage("%s is there already and is no file of facts of this link: name another one with -o", path)
	}
	return nil
}

// recipients are those for whom the secrets are sealed.
func (a *app) recipients(f handoverFlags) (facts.Recipients, error) {
	if f.phrase && len(f.to) > 0 {
		return facts.Recipients{}, usage("--to and --passphrase: one of the two")
	}
	if f.phrase {
		return a.byPassphrase()
	}
	var texts []string
	for _, t := range f.to {
		path, isFile := strings.CutPrefix(t, "@")
		if !isFile {
			texts = append(texts, t)
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return facts.Recipients{}, usage("--to @%s: %w", path, plainOpen(err))
		}
		for _, line := range bytes.Split(data, []byte("\n")) {
			if l := strings.TrimSpace(string(line)); l != "" && !strings.HasPrefix(l, "#") {
				texts = append(texts, l)
			}
		}
	}
	to, err := facts.For(texts)
	if err != nil {
		return to, usage("--to: %w", err)
	}
	return to, nil
}

func (a *app) byPassphrase() (facts.Recipients, error) {
	phrase := ""
	if a.keys.passphrase != "" {
		data, err := a.privateFile("--passphrase-file", a.keys.passphrase)
		if err != nil {
			return facts.Recipients{}, err
		}
		phrase = string(bytes.TrimRight(data, "\r\n"))
	} else {
		var err error
		if phrase, err = a.typedTwice(); err != nil {
			return facts.Recipients{}, err
		}
	}
	if len(phrase) < 12 {
		return facts.Recipients{}, usage("a passphrase has at least 12 characters")
	}
	return facts.ForPassphrase(phrase)
}

func (a *app) typedTwice() (string, error) {
	first, err := a.typed("Passphrase for the secrets")
	if errors.Is(err, errNobody) {
		return "", usage("--passphrase: there is nobody to ask; give it with --passphrase-file FILE")
	}
	if err != nil {
		return "", err
	}
	again, err := a.typed("Once more")
	if err != nil {
		return "", err
	}
	if first != again {
		return "", usage("the two passphrases differ")
	}
	return first, nil
}
