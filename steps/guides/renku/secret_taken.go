package renku

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/check"
)

// noteTaken is the prefix of an annotation on the Secret; the link's name follows. The
// annotation names the key that this link took over, so that undo restores that key instead of
// deleting it.
const noteTaken = "carrick/taken."

// givenBack is the field manager of a restored key, which belongs to its former owner again.
const givenBack = "carrick-given-back"

// makeRoom saves another tool's value under the key to a file, and removes the key from exactly
// the saved version of the Secret.
func (s sharedSecret) makeRoom(ctx context.Context, e steps.Env, path string, say steps.Progress) error {
	c, err := s.Manifest.Plan(ctx, e)
	if err != nil {
		return err
	}
	key := e.Answers.Text("cluster.config-name")
	theirs := func(it steps.Item) bool {
		return slices.ContainsFunc(
			it.Conflicts, func(c failure.Conflict) bool { return strings.TrimPrefix(c.Field, ".") == "data."+key },
		)
	}
	if !slices.ContainsFunc(c.Items, theirs) {
		return nil
	}
	ns, name := secretWhere(e)
	live, err := fetchSecret(ctx, e, ns, name)
	if err != nil {
		return err
	}
	old, _, _ := unstructured.NestedString(live.Object, "data", key)
	raw, err := base64.StdEncoding.DecodeString(old)
	if err != nil {
		return fmt.Errorf("key %s of Secret %s/%s is not base64", key, ns, name)
	}
	if err := saveOnce(path, raw); err != nil {
		return fmt.Errorf("save the old value of key %s: %w", key, err)
	}
	say.Say("the old value of key %s is saved in %s", key, path)
	return patchSecret(ctx, e, live, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{noteTaken + e.Link: key}},
		"data":     map[string]any{key: nil},
	})
}

// patchSecret changes a Secret only if it still has the version that was read.
func patchSecret(ctx context.Context, e steps.Env, live *unstructured.Unstructured, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = e.Cluster.Patch(ctx, check.Secrets, live.GetNamespace(), live.GetName(), patch,
		cluster.PatchOptions{Manager: e.Manager(), UID: live.GetUID(), ResourceVersion: live.GetResourceVersion()})
	return err
}

const backupEnding = ".before"

// checkBackup rejects a file name that does not end in ".before". Otherwise another admin's link
// file could make carrick read or write an arbitrary file of this machine.
func checkBackup(v string) error {
	if !strings.HasSuffix(v, backupEnding) {
		return fmt.Errorf("%q is not a backup file name: use a name that ends in %s", v, backupEnding)
	}
	return nil
}

// saveOnce writes a file that only its owner can read. It never overwrites an existing file.
func saveOnce(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if had, readErr := os.ReadFile(path); readErr == nil && string(had) == string(content) {
			return nil
		}
		return fmt.Errorf("%s already exists with other content: answer secret.backup with another file", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// takenKey returns the key that this link took over in a Secret, or "" if it took over none or
// another tool has written the key since.
func takenKey(e steps.Env, live *unstructured.Unstructured) string {
	key := live.GetAnnotations()[noteTaken+e.Link]
	if key == "" || ownedByOthers(live.GetManagedFields(), key, e.Manager()) {
		return ""
	}
	return key
}

// formerly returns the value that a key had before it was taken over, and describes what undo
// does with the key. If the backup file cannot be read, it returns the current value, because a
// key that others depend on must not be left empty.
func formerly(e steps.Env, live *unstructured.Unstructured, key string) (encoded, words string) {
	file := e.Answers.Text("secret.backup")
	raw, err := readBackup(file)
	if err == nil {
		return base64.StdEncoding.EncodeToString(raw), "key " + key + " is restored to its old value from " + file
	}
	encoded, _, _ = unstructured.NestedString(live.Object, "data", key)
	return encoded, "key " + key +
		" belonged to another user or tool and is kept: its old value cannot be read from the file in secret.backup"
}

// readBackup reads a file that makeRoom saved. It does not follow a symbolic link.
func readBackup(file string) ([]byte, error) {
	if err := checkBackup(file); err != nil {
		return nil, err
	}
	info, err := os.Lstat(file)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", file)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// giveBack restores the old value of a key that was taken over and releases the key.
func (s sharedSecret) giveBack(ctx context.Context, e steps.Env, ns, name string, say steps.Progress) error {
	live, err := fetchSecret(ctx, e, ns, name)
	if err != nil {
		return err
	}
	if live.GetAnnotations()[noteTaken+e.Link] == "" {
		return nil
	}
	if key := takenKey(e, live); key != "" {
		value, words := formerly(e, live, key)
		back := bareSecret(ns, name)
		back.SetUID(live.GetUID()) // do not recreate a Secret that was deleted
		back.Object["data"] = map[string]any{key: value}
		if value != "" {
			if _, err := e.Cluster.Apply(ctx, back, cluster.ApplyOptions{Manager: givenBack, Force: true}); err != nil {
				return fmt.Errorf("restore key %s of Secret %s/%s: %w", key, ns, name, err)
			}
			say.Say("%s", words)
		}
		if live, err = fetchSecret(ctx, e, ns, name); err != nil {
			return err
		}
	}
	return patchSecret(
		ctx, e, live, map[string]any{"metadata": map[string]any{"annotations": map[string]any{noteTaken + e.Link: nil}}},
	)
}
