package steps

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Note is what an action has noted in the inventory of its link, such as the id of what it created in another system; "":
// nothing. It is read anew each time.
func NoteOf(ctx context.Context, e Env, action string) (string, error) {
	inv, err := readableInventory(ctx, envOf(e, e.Link, e.Action))
	if err != nil {
		return "", err
	}
	return inv.notes[action], nil
}

// SetNote notes something for an action; "" removes the note.
func SetNote(ctx context.Context, e Env, action, text string, say Progress) error {
	inv, err := readableInventory(ctx, envOf(e, e.Link, e.Action))
	if err != nil || (text == "" && inv.uid == "") {
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
