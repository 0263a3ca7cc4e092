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

// noteTaken is the prefix of an annotation on the Secret. The link's name follows the prefix. The
// value is the key that this link took over. Undo restores this key instead of deleting it.
const noteTaken = "carrick/taken."

// givenBack is the field manager of keys that undo has restored to their old values.
const givenBack = "carrick-given-back"

// saveAndRemove prepares to take over the key. It saves the other tool's value to a file, then
// removes the key from the Secret. The removal fails if the Secret has changed since carrick read
// it.
func (s sharedSecret) saveAndRemove(ctx context.Context, e steps.Env, path string, say steps.Progress) error {
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

// patchSecret patches the Secret live with change. It fails if the Secret has changed since carrick
// read it.
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

// checkBackup rejects a file name that does not end in ".before". Otherwise a link file from
// another admin could make carrick read or write any file on this machine.
func checkBackup(v string) error {
	if !strings.HasSuffix(v, backupEnding) {
		return fmt.Errorf("%q is not a backup file name: use a name that ends in %s", v, backupEnding)
	}
	return nil
}

// saveOnce creates a file with mode 0600. It never overwrites a file. It returns an error if the
// file exists with other content.
func saveOnce(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if had, readErr := os.ReadFile(path); readErr == nil && string(had) == string(content) {
			return nil
		}
		return fmt.Errorf("%s already exists with other content: set secret.backup to another file", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// takenKey returns the key of a Secret that this link took over. It returns "" if there is no such
// key, or if another tool has written the key since then.
func takenKey(e steps.Env, live *unstructured.Unstructured) string {
	key := live.GetAnnotations()[noteTaken+e.Link]
	if key == "" || ownedByOthers(live.GetManagedFields(), key, e.Manager()) {
		return ""
	}
	return key
}

// formerly returns the base64 value that undo restores for key, and a message for the user. The
// value comes from the backup file. If the file cannot be read, formerly returns the current value,
// because other tools might depend on the key.
func formerly(e steps.Env, live *unstructured.Unstructured, key string) (encoded, words string) {
	file := e.Answers.Text("secret.backup")
	raw, err := readBackup(file)
	if err == nil {
		return base64.StdEncoding.EncodeToString(raw), "key " + key + " is restored to its old value from " + file
	}
	encoded, _, _ = unstructured.NestedString(live.Object, "data", key)
	return encoded, "key " + key +
		" belonged to another user or tool. carrick keeps the key, because its old value cannot be read from the file in " +
		"secret.backup"
}

// readBackup reads a file that saveAndRemove saved. It rejects symbolic links.
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

// restoreKey restores the old value of a key that this link took over, and removes the annotation.
func (s sharedSecret) restoreKey(ctx context.Context, e steps.Env, ns, name string, say steps.Progress) error {
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
