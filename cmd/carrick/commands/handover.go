package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"carrick/cluster"
	"carrick/cmd/carrick/exit"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/facts"
)

type handoverFlags struct {
	side, file string
	to         []string
	phrase     bool
	good       time.Duration
	signWith   string
}

func (a *app) handover() *cobra.Command {
	var f handoverFlags
	cmd := &cobra.Command{
		Use: "handover LINK", Short: "Write a facts file of one side for the admin of the other",
		Long: `Writes the facts, answers and verdicts of your side that the admin of the other side
needs to continue without your credentials. The other admin names the file in the
link file, instead of a context:

  remote: {facts: FILE}

Secrets are encrypted with age, for the recipient of --to or with a passphrase.
Otherwise they are left out, and listed. It changes nothing in a cluster.

The file is signed. carrick creates the key on first use, as carrick/signing-key
in your configuration directory, and prints its fingerprint. Send the fingerprint to
the other admin: carrick asks them once to confirm the key.`,
		Example: `  carrick handover milan-rome.yaml -o rome.facts
  carrick handover milan-rome.yaml --to "$(cat milan-admin.pub)"`,
		Args: a.needLink,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runHandover(cmd.Context(), args[0], f)
		},
	}
	a.secrets.add(cmd.Flags())
	cmd.Flags().StringVar(
		&f.side, "side", "", "the side whose facts to hand over (default: the one that you have a context for)",
	)
	cmd.Flags().StringVarP(&f.file, "output", "o", "", "file to write (default: LINK-SIDE.facts next to the link file)")
	cmd.Flags().StringArrayVar(
		&f.to, "to", nil, "who may read the secrets: an age recipient (age1…) or an SSH public key; @FILE for a file of them",
	)
	cmd.Flags().BoolVar(
		&f.phrase, "passphrase", false, "encrypt the secrets with a passphrase, from --passphrase-file or a prompt",
	)
	cmd.Flags().DurationVar(&f.good, "for", engine.UsualGood, "how long the file is valid")
	cmd.Flags().StringVar(
		&f.signWith, "sign-with", "",
		"`file` with the SSH private key that signs the file: ed25519, without a passphrase (default: a key that "+
			"carrick creates)",
	)
	return cmd
}

func (a *app) runHandover(ctx context.Context, link string, f handoverFlags) error {
	if f.good <= 0 || f.good > engine.LongestGood {
		return exit.Usagef("--for %s: must be positive and at most %s", f.good, engine.LongestGood)
	}
	to, err := a.recipients(f)
	if err != nil {
		return err
	}
	key, err := a.signingKey(f.signWith)
	if err != nil {
		return err
	}
	a.handing = true
	s, err := a.open(ctx, link, cluster.Options{Once: true})
	if err != nil {
		return err
	}
	defer s.Close()
	side, err := handedSide(s, f.side)
	if err != nil {
		return err
	}
	if err := a.signers(ctx, s, false, false); err != nil {
		return err
	}
	h, err := s.WriteHandover(ctx, engine.HandoverOptions{Side: side, File: f.file, To: to, Good: f.good, Key: key})
	if err != nil {
		return err
	}
	fmt.Fprintln(a.out, h.Path)
	for _, line := range h.Says {
		fmt.Fprintln(a.err, line)
	}
	return nil
}

// handedSide returns the side in --side. Without the flag, it returns the only side that the user has access to.
func handedSide(s *engine.Session, flag string) (steps.Side, error) {
	side, err := sideFlag(flag, s.Guide())
	if err != nil {
		return side, err
	}
	if end := s.Endpoint(side); side != "" && end.Cluster == nil && end.Host == nil {
		return "", exit.Usagef(
			"%s: only the admin of that side can hand over its facts; your side is the %s", end.Absent,
			s.Guide().Sides[side.Peer()].Name,
		)
	}
	if side != "" {
		return side, nil
	}
	var here []steps.Side
	for _, side := range steps.Sides {
		if e := s.Endpoint(side); e.Cluster != nil || e.Host != nil {
			here = append(here, side)
		}
	}
	if len(here) != 1 {
		g := s.Guide()
		return "", exit.Usagef(
			"choose the side whose facts to hand over: --side %s or --side %s", g.Sides[steps.Local].Flag(),
			g.Sides[steps.Remote].Flag(),
		)
	}
	return here[0], nil
}

func (a *app) recipients(f handoverFlags) (facts.Recipients, error) {
	if f.phrase && len(f.to) > 0 {
		return facts.Recipients{}, exit.Usagef("--to and --passphrase cannot be used together")
	}
	if f.phrase {
		return a.byPassphrase()
	}
	to, err := engine.RecipientsOf(f.to...)
	if err != nil {
		return to, exit.Usagef("--to: %w", err)
	}
	return to, nil
}

// signingKey reads the key in --sign-with. It returns nil if path is "", and the user's own key then signs.
func (a *app) signingKey(path string) (*facts.Key, error) {
	if path == "" {
		return nil, nil
	}
	data, err := a.privateFile("--sign-with", path)
	if err != nil {
		return nil, err
	}
	key, err := facts.ParseKey(data)
	if err != nil {
		return nil, exit.Usagef("--sign-with %s: %w", path, err)
	}
	return key, nil
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
		return facts.Recipients{}, exit.Usagef("a passphrase requires at least 12 characters")
	}
	return facts.ForPassphrase(phrase)
}

func (a *app) typedTwice() (string, error) {
	first, err := a.typed("Passphrase for the secrets")
	if errors.Is(err, errNoInput) {
		return "", exit.Usagef("--passphrase: cannot ask for it without a terminal; use --passphrase-file FILE")
	}
	if err != nil {
		return "", err
	}
	again, err := a.typed("Repeat the passphrase")
	if err != nil {
		return "", err
	}
	if first != again {
		return "", exit.Usagef("the two passphrases differ")
	}
	return first, nil
}
