package lines

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
	"carrick/ui/model"
)

// handWithin is the timeout for reading the facts of a side.
const handWithin = time.Minute

// handOver writes the facts of a side to a file and prints which admin must continue.
func (w *walk) handOver(string) error {
	side, err := w.sideToHand()
	if err != nil || side == "" {
		return orNothing(err)
	}
	instead := "carrick handover " + w.path() + " --side " + w.flag(side)
	usual := w.live.Session.HandoverFile(side)
	file, err := w.ask(
		question{prompt: fmt.Sprintf("File for the facts of the %s [%s]:", w.role(side), usual), help: func() {
			w.out.say("The other admin gets these facts in a file, without your credentials.")
		}, instead: instead},
	)
	if err != nil {
		return orNothing(err)
	}
	o := engine.HandoverOptions{Side: side, File: strings.TrimSpace(file)}
	to, err := w.ask(question{prompt: "Who can read its secrets, empty to leave secrets out:", help: func() {
		w.out.say("An age recipient (age1…), an SSH public key, or @FILE. Secrets are encrypted for this recipient. " +
			"Without a recipient they are left out, and listed.")
	}, instead: instead})
	if err != nil {
		return orNothing(err)
	}
	if to = strings.TrimSpace(to); to != "" {
		if o.To, err = engine.RecipientsOf(to); err != nil {
			w.out.sentence("%s. Nothing was written", err.Error())
			return nil
		}
	}
	return w.writeHandover(o)
}

func (w *walk) writeHandover(o engine.HandoverOptions) error {
	var done *engine.WrittenFile
	var next []string
	err := w.wait(
		func() string { return "the facts of the " + w.role(o.Side) }, nil, func(ctx context.Context) (err error) {
			ctx, cancel := context.WithTimeout(ctx, handWithin)
			defer cancel()
			if done, err = w.live.Session.WriteHandover(ctx, o); err == nil && len(w.live.Session.Here()) == 1 {
				next = w.live.Session.NextTurn(ctx, o.Side)
			}
			return err
		},
	)
	switch {
	case errors.Is(err, errCancelled):
		return nil
	case err != nil && w.mine(err):
		return err
	case err != nil:
		w.trouble("No file was written: ", err)
		return nil
	}
	w.out.sentence("Wrote %s", done.Path)
	for _, line := range done.Says {
		w.out.say("%s", model.OneLine(line))
	}
	for _, line := range next {
		w.out.sentence("Next, %s", line)
	}
	return nil
}

// sideToHand returns the side for which the user has a context. If the user has a context for both sides, it asks which
// side to hand over. If the user has a context for neither side, it returns "".
func (w *walk) sideToHand() (steps.Side, error) {
	here := w.live.Session.Here()
	switch len(here) {
	case 0:
		w.out.say("You have no context for either side, so there are no facts to hand over.")
		return "", nil
	case 1:
		return here[0], nil
	}
	for {
		text, err := w.ask(question{
			prompt:  fmt.Sprintf("Whose facts, %s or %s:", w.role(steps.Local), w.role(steps.Remote)),
			help:    func() { w.out.say("The side whose facts the other admin needs.") },
			instead: "carrick handover " + w.path() + " --side " + w.flag(steps.Local),
		})
		if err != nil {
			return "", err
		}
		for _, side := range here {
			if text = strings.TrimSpace(text); text == w.role(side) || text == w.flag(side) || text == string(side) {
				return side, nil
			}
		}
		w.out.sentence("%s is not one of the two sides", quoted(text))
	}
}

func orNothing(err error) error {
	if errors.Is(err, errBack) {
		return nil
	}
	return err
}

// handed asks for a facts file instead of a context. If none was chosen, it returns false.
func (p *sides) handed(side steps.Side) (bool, error) {
	w, role, flag := p.w, p.guide.Sides[side].Name, p.guide.Sides[side].Flag()
	if p.spec[side.Peer()].Facts != "" {
		w.out.sentence(
			"The %s already uses a facts file; the other side must be one of your contexts", p.guide.Sides[side.Peer()].Name,
		)
		return false, nil
	}
	w.out.sentence("Ask the %s's admin for a facts file: carrick handover LINK --side %s -o %s.facts", role, flag, flag)
	instead := fmt.Sprintf("a link file with %s: {facts: FILE}", side)
	text, err := w.ask(question{prompt: fmt.Sprintf("Facts file of the %s:", role), help: func() {
		w.out.say("The path of the facts file that the other admin wrote with carrick handover.")
	}, instead: instead})
	if err != nil {
		return false, orNothing(err)
	}
	path := strings.TrimSpace(text)
	head, err := engine.ReadPeerFileHeader(path, p.guide, side)
	if err != nil {
		w.out.sentence("%s", err.Error())
		return false, nil
	}
	for head.ByPhrase && w.o.Unlock != nil {
		phrase, err := w.ask(question{prompt: "Passphrase of the file:", secret: true, help: func() {
			w.out.say(
				"Secrets in the file are encrypted with a passphrase. The admin who wrote the file sends you the passphrase " +
					"separately.",
			)
		}, instead: "carrick LINK --passphrase-file FILE"})
		if err != nil {
			return false, orNothing(err)
		}
		if err = w.o.Unlock(path, phrase); err == nil {
			break
		}
		w.out.sentence("%s", err.Error())
	}
	p.spec[side] = linkfile.EndpointSpec{Facts: path}
	p.link = head.Link
	w.out.sentence(
		"The file is for link %s: both admins must use that name. It is signed with the key %s", head.Link, head.Signer,
	)
	return true, nil
}
