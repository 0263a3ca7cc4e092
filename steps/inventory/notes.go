package inventory

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/steps"
)

// Note is what an action has noted in the inventory of its link, such as the id of what it created in another system;
// "": nothing. It is read anew each time.
func Note(ctx context.Context, e steps.Env, action string) (string, error) {
	inv, err := Readable(ctx, EnvOf(e, e.Link, e.Action))
	if err != nil {
		return "", err
	}
	return inv.Notes[action], nil
}

// SetNote notes something for an action; "" removes the note.
func SetNote(ctx context.Context, e steps.Env, action, text string, say steps.Progress) error {
	inv, err := Readable(ctx, EnvOf(e, e.Link, e.Action))
	if err != nil || (text == "" && inv.UID == "") {
		return err
	}
	var value any = text
	if text == "" {
		value = nil
	}
	err = inv.annotate(ctx, e, say, map[string]any{inventoryNote + action: value}, "")
	if apierrors.IsAlreadyExists(err) { // another run of this link was quicker
		return SetNote(ctx, e, action, text, say)
	}
	return err
}
