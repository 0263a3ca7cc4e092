package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/nearest"
	"carrick/cmd/carrick/exit"
	"carrick/cmd/carrick/plain"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

type adoptFlags struct {
	name, output string
	host         string
	force        bool
	signIn       bool
	answers      []string
}

func (a *app) adopt() *cobra.Command {
	var f adoptFlags
	cmd := &cobra.Command{
		Use: "adopt GUIDE", Short: "Write a link file for an existing set-up",
		Long: "Inspects two sides that are already joined, discovers the names that the set-up uses, and\nwrites them to a " +
			"link file. It changes nothing in any cluster. Answers that carrick could not\ndiscover are comments in the link " +
			"file.\n\nExit code 0: the file is written or printed, even if checks fail; 2: usage error, or the file\nalready exists; 5: " +
			"a side does not answer, and nothing was written.",
		Example: "  carrick adopt renku --context kind-milan --remote-context gke-rome\n  carrick adopt liqo " +
			"--remote-context rome --answer offloading.namespace=shop\n  carrick adopt ondemand --host / --remote-context pods",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("name one guide: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.runAdopt(cmd.Context(), args[0], f) },
	}
	cmd.Flags().StringVar(&f.name, "name", "", "name of the link")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "link file to write, or - for standard output (default NAME.yaml)")
	cmd.Flags().BoolVar(&f.force, "force", false, "overwrite an existing file")
	cmd.Flags().StringVar(
		&f.host, "host", "", "root directory of the side that is a machine: / for this machine, or another directory",
	)
	cmd.Flags().StringArrayVar(&f.answers, "answer", nil, "KEY=VALUE, an answer that you know")
	cmd.Flags().BoolVar(&f.signIn, "sign-in", false, "sign in with a browser to services that show details only to admins")
	a.secrets.add(cmd.Flags())
	return cmd
}

func (a *app) runAdopt(ctx context.Context, guide string, f adoptFlags) error {
	g, err := steps.FindGuide(a.Guides, guide)
	if err != nil {
		return exit.AsUsage(err)
	}
	l, err := a.adoptedLink(g, f)
	if err != nil {
		return err
	}
	if err := a.readSecrets(ctx, g); err != nil {
		return err
	}
	if f.signIn {
		if err := a.signInFirst(ctx, g, f); err != nil {
			return err
		}
	}
	s, err := a.openBoth(ctx, l, cluster.Options{Once: true})
	if err != nil {
		return err
	}
	defer func() { s.Close() }()
	links, named := s.MarkedLinks(ctx), f.name != "" || f.output != "" && f.output != toStdout
	if !named && len(links) == 1 && links[0] != l.Name() {
		fmt.Fprintf(
			a.err, "carrick created part of this set-up for link %s. The new link gets the same name, so that undo works\n",
			links[0],
		)
		f.name = links[0]
		if l, err = a.adoptedLink(g, f); err != nil {
			return err
		}
		s.Close()
		if s, err = a.openBoth(ctx, l, cluster.Options{Once: true}); err != nil {
			return err
		}
	}
	found, err := a.takeOn(ctx, s, f)
	if err != nil {
		return err
	}
	return a.tellAdopted(ctx, s, found, f.output == toStdout)
}

// toStdout as the name of the link file means standard output.
const toStdout = "-"

func (a *app) openBoth(ctx context.Context, l *linkfile.Link, o cluster.Options) (*engine.Session, error) {
	s, err := a.session(l, o)
	if err != nil {
		return nil, err
	}
	if err := bothAnswer(ctx, s); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// signInFirst discovers the answers that require no sign-in and uses them to sign in. It keeps the credentials until
// carrick exits.
func (a *app) signInFirst(ctx context.Context, g *steps.Guide, f adoptFlags) error {
	if a.attended = isTerminalStream(a.in) && isTerminalStream(a.err); !a.attended {
		return exit.Usagef("--sign-in requires an interactive terminal: pass a token with --secret instead")
	}
	l, err := a.adoptedLink(g, f)
	if err != nil {
		return err
	}
	s, err := a.openBoth(ctx, l, cluster.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Adopt(ctx); err != nil {
		return err
	}
	a.secrets.values, err = s.SignIn(ctx, func(e steps.Event) { fmt.Fprintln(a.err, clean.Text(e.Text)) })
	return err
}

// takeOn discovers the answers from the existing setup and writes the link file.
func (a *app) takeOn(ctx context.Context, s *engine.Session, f adoptFlags) ([]engine.Adopted, error) {
	path := s.Link().Path
	if _, err := os.Lstat(path); f.output == toStdout {
	} else if err == nil && !f.force {
		return nil, exit.Usagef("%s already exists: name another file with -o, or add --force to overwrite it", path)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var at []string
	for _, side := range namedSides(s) {
		at = append(at, plain.OneLine(s.Endpoint(side).Name))
	}
	fmt.Fprintf(a.err, "inspecting %s for the set-up of the guide %s …\n", strings.Join(at, " and "), s.Guide().Name)
	found, err := s.Adopt(ctx)
	if err != nil {
		return nil, err
	}
	if f.output == toStdout {
		data, err := s.AdoptedFile(found)
		if err == nil {
			_, err = a.out.Write(data)
		}
		return found, err
	}
	return found, s.SaveAdopted(found)
}

func (a *app) adoptedLink(g *steps.Guide, f adoptFlags) (*linkfile.Link, error) {
	ends, err := a.adoptedSides(g, f.host)
	if err != nil {
		return nil, err
	}
	name := f.name
	if name == "" && f.output != "" && f.output != toStdout {
		name = strings.TrimSuffix(filepath.Base(f.output), filepath.Ext(f.output))
	}
	if name == "" {
		name = engine.SuggestLinkName(g.Name, ends[steps.Local].Context, ends[steps.Remote].Context)
	}
	if err := linkfile.CheckName(name); err != nil {
		return nil, exit.Usagef("%w; set a name with --name", err)
	}
	l := linkfile.New(g.Name, name)
	l.Path = f.output
	if l.Path == "" || l.Path == toStdout {
		l.Path = name + ".yaml"
	}
	for side, end := range ends {
		*l.Side(side) = end
	}
	for _, flag := range f.answers {
		if err := giveAnswer(g, l, flag); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// giveAnswer sets one answer. flag is KEY=VALUE.
func giveAnswer(g *steps.Guide, l *linkfile.Link, flag string) error {
	key, typed, ok := strings.Cut(flag, "=")
	key = g.Current(key)
	q, _ := g.Question(key)
	switch {
	case !ok && q != nil && !q.Secret:
		return exit.Usagef("--answer %s has no value: write %s=VALUE", key, key)
	case q == nil && ok:
		return exit.Usagef(
			"--answer: guide %s has no question %q%s; carrick guides %s lists the keys", g.Name, key,
			nearest.Hint(key, g.Keys()), g.Name,
		)
	case q == nil:
		return exit.Usagef("--answer requires KEY=VALUE; carrick guides %s lists the keys", g.Name)
	case q.Secret: // the error must not repeat the secret
		return exit.Usagef("--answer %s: the answer is secret; pass it with --secret %s=@FILE", key, key)
	}
	v, err := q.Parse(typed)
	if err != nil {
		return exit.Usagef("--answer %s: %w", key, err)
	}
	if v == nil {
		v = steps.LeftEmpty
	}
	l.Answers[key] = v
	return nil
}
