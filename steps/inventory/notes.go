package inventory

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/steps"
)

// Note returns the note of an action in the inventory, or "" if there is none. A note is, for example, the ID of an
// object that the action created in another system. Note reads the inventory on every call.
func Note(ctx context.Context, e steps.Env, action string) (string, error) {
	inv, err := Readable(ctx, EnvOf(e, e.Link, e.Action))
	if err != nil {
		return "", err
	}
	return inv.Notes[action], nil
}

// SetNote stores the note of an action. If text is "", it removes the note.
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
	if apierrors.IsAlreadyExists(err) { // another run of this link created it first
		return SetNote(ctx, e, action, text, say)
	}
	return err
}
