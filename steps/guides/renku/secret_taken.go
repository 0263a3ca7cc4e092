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

// noteTaken + link notes on the Secret the key that this link took over: undo
// gives it back, and does not take it away.
const noteTaken = "carrick/taken."

// givenBack is the field manager of a key that is its former owner's again.
const givenBack = "carrick-given-back"

// makeRoom saves the value that somebody else has under the key to a file, and
// takes the key out of the Secret in the version that was saved.
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

// patchSecret changes a Secret in the version that was read, and no other.
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

// checkBackup keeps another admin's link file from naming any other file of this machine, to be read or written.
func checkBackup(v string) error {
	if !strings.HasSuffix(v, backupEnding) {
		return fmt.Errorf("%q is not the name of a backup: use a file name that ends in %s", v, backupEnding)
	}
	return nil
}

// saveOnce writes a file that only its owner may read, and overwrites none.
func saveOnce(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if had, readErr := os.ReadFile(path); readErr == nil && string(had) == string(content) {
			return nil
		}
		return fmt.Errorf("%s is there already and holds something else: answer secret.backup with another file", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// takenKey is the key that this link took over in a Secret; "" where it took
// none, or somebody else has written it since.
func takenKey(e steps.Env, live *unstructured.Unstructured) string {
	key := live.GetAnnotations()[noteTaken+e.Link]
	if key == "" || ownedByOthers(live.GetManagedFields(), key, e.Manager()) {
		return ""
	}
	return key
}

// formerly is the value that a key had before it was taken over, and what
// becomes of the key in words. Where the file is gone, the value of today
// stays: a key that others count on is never left without one.
func formerly(e steps.Env, live *unstructured.Unstructured, key string) (encoded, words string) {
	file := e.Answers.Text("secret.backup")
	raw, err := readBackup(file)
	if err == nil {
		return base64.StdEncoding.EncodeToString(raw), "key " + key + " gets its old value back, from " + file
	}
	encoded, _, _ = unstructured.NestedString(live.Object, "data", key)
	return encoded, "key " + key +
		" was somebody else's and stays as it is: its old value can't be read from the file in secret.backup"
}

// readBackup reads a file that makeRoom saved, and none that a symbolic link leads to.
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

// giveBack leaves a key that was taken over to its Secret, with its old value.
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
		back.SetUID(live.GetUID()) // one that is gone must not be made anew
		back.Object["data"] = map[string]any{key: value}
		if value != "" {
			if _, err := e.Cluster.Apply(ctx, back, cluster.ApplyOptions{Manager: givenBack, Force: true}); err != nil {
				return fmt.Errorf("give back key %s of Secret %s/%s: %w", key, ns, name, err)
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
