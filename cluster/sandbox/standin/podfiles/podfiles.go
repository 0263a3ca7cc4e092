// Package podfiles fakes how a kubelet writes Secrets, ConfigMaps and projected volumes to files for a pod's
// containers.
//
// Source: kubernetes/kubernetes v1.37.2.
//
//   - The files of a volume: pkg/volume/secret/secret.go and pkg/volume/configmap/configmap.go (MakePayload: all keys,
//     or the items; a missing key of an optional volume is omitted, otherwise the mount fails), and
//     pkg/volume/projected/projected.go (collectData).
//   - A missing object delays the pod, unless it is optional: SetUpAt in the same files. The error names the object in
//     the singular: pkg/kubelet/secret/secret_manager.go, pkg/kubelet/configmap/configmap_manager.go.
//   - The files are symbolic links through ..data, which a rename atomically switches to a new directory. Links of
//     removed keys are deleted last: pkg/volume/util/atomic_writer.go (Write).
//
// Known differences: callers must handle ServiceAccount tokens. Other sources of projected volumes are not supported
// (downwardAPI, clusterTrustBundle, podCertificate). Modes and owners are ignored: files are readable only by their
// owner. A projected volume reports only its first error. Callers decide how often to refresh a volume. A kubelet
// refreshes a volume each time the kubelet syncs the pod.
package podfiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ErrWaits means that a pod cannot start yet because a mounted Secret, ConfigMap or key does not exist.
var ErrWaits = errors.New("waits for a missing Secret, ConfigMap or key")

// absence is an error with a kubelet's message. It matches ErrWaits.
type absence string

func (a absence) Error() string   { return string(a) }
func (a absence) Is(e error) bool { return e == ErrWaits }

// Write writes a file, readable only by its owner. It creates the parent directories.
func Write(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o600)
}

// Project writes files to the directory at, as a kubelet does. A symbolic link switches all files at once. If files is
// empty and the directory has no files yet, Project does nothing.
func Project(at string, files map[string][]byte) error {
	was, err := os.Readlink(filepath.Join(at, dataLink))
	if err != nil && len(files) == 0 {
		return nil
	}
	dir, err := os.MkdirTemp(at, "..")
	if err != nil {
		return err
	}
	visible := map[string]bool{}
	for name, data := range files {
		if err := Write(filepath.Join(dir, name), data); err != nil {
			return err
		}
		first, _, _ := strings.Cut(name, "/")
		visible[first] = true
	}
	next := filepath.Join(at, "..data_tmp")
	if err := errors.Join(os.Symlink(filepath.Base(dir), next), os.Rename(next, filepath.Join(at, dataLink))); err != nil {
		return err
	}
	for name := range visible {
		if err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(at, name)); err != nil &&
			!errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if was == "" {
		return nil
	}
	return errors.Join(prune(at, visible), os.RemoveAll(filepath.Join(at, was)))
}

// prune removes the symbolic links of deleted files.
func prune(at string, visible map[string]bool) error {
	entries, err := os.ReadDir(at)
	for _, e := range entries {
		name := filepath.Join(at, e.Name())
		to, notLink := os.Readlink(name)
		if notLink == nil && strings.HasPrefix(to, dataLink+"/") && !visible[e.Name()] {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

// dataLink is the symbolic link to the directory with the current files.
const dataLink = "..data"

// Same reports whether the directory at contains exactly the given files.
func Same(at string, files map[string][]byte) bool {
	for name, data := range files {
		if have, err := os.ReadFile(filepath.Join(at, name)); err != nil || !bytes.Equal(have, data) {
			return false
		}
	}
	dir, err := os.Readlink(filepath.Join(at, dataLink))
	if err != nil {
		return len(files) == 0
	}
	same := true
	err = filepath.WalkDir(filepath.Join(at, dir), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inside, err := filepath.Rel(filepath.Join(at, dir), name)
		if _, wanted := files[filepath.ToSlash(inside)]; !wanted {
			same = false
		}
		return err
	})
	return same && err == nil
}

// Volume returns the files in a volume. It returns none if it does not support the type of the volume.
func Volume(
	ctx context.Context, client kubernetes.Interface, namespace string, v corev1.Volume,
) (map[string][]byte, error) {
	switch {
	case v.ConfigMap != nil:
		held, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		optional := v.ConfigMap.Optional != nil && *v.ConfigMap.Optional
		if err != nil {
			return nil, missing(err, optional, "configmap", v.ConfigMap.Name)
		}
		files := map[string][]byte{}
		for name, text := range held.Data {
			files[name] = []byte(text)
		}
		maps.Copy(files, held.BinaryData)
		return chosen(files, v.ConfigMap.Items, optional, "configmap references non-existent config key: ")
	case v.Secret != nil:
		held, err := client.CoreV1().Secrets(namespace).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
		optional := v.Secret.Optional != nil && *v.Secret.Optional
		if err != nil {
			return nil, missing(err, optional, "secret", v.Secret.SecretName)
		}
		return chosen(held.Data, v.Secret.Items, optional, "references non-existent secret key: ")
	case v.Projected != nil:
		files := map[string][]byte{}
		for _, s := range v.Projected.Sources {
			one := corev1.Volume{}
			switch {
			case s.ConfigMap != nil:
				one.ConfigMap = &corev1.ConfigMapVolumeSource{
					LocalObjectReference: s.ConfigMap.LocalObjectReference, Items: s.ConfigMap.Items, Optional: s.ConfigMap.Optional,
				}
			case s.Secret != nil:
				one.Secret = &corev1.SecretVolumeSource{
					SecretName: s.Secret.Name, Items: s.Secret.Items, Optional: s.Secret.Optional,
				}
			}
			more, err := Volume(ctx, client, namespace, one)
			if err != nil {
				return nil, err
			}
			maps.Copy(files, more)
		}
		return files, nil
	}
	return map[string][]byte{}, nil
}

// chosen returns the files that items select. If items is empty, it returns all files.
func chosen(
	files map[string][]byte, items []corev1.KeyToPath, optional bool, complaint string,
) (map[string][]byte, error) {
	if len(items) == 0 {
		return files, nil
	}
	out := map[string][]byte{}
	for _, item := range items {
		data, ok := files[item.Key]
		switch {
		case ok:
			out[item.Path] = data
		case !optional:
			return nil, absence(complaint + item.Key)
		}
	}
	return out, nil
}

// missing converts a NotFound error to an absence, or to nil if the object is optional. All other errors stay
// unchanged.
func missing(err error, optional bool, kind, name string) error {
	switch {
	case !apierrors.IsNotFound(err):
		return err
	case optional:
		return nil
	}
	return absence(fmt.Sprintf("%s %q not found", kind, name))
}
