// Package podfiles plays the part of a kubelet that puts Secrets, ConfigMaps and what
// is projected of them into folders for a pod's containers
// (Kubernetes pkg/volume/util, AtomicWriter). It leaves ServiceAccount tokens to others.
package podfiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ErrWaits means that a pod can't start yet, for what it mounts is not there.
var ErrWaits = errors.New("waits for what it mounts")

// Write writes a file, and the folders above it, readable by their owner alone.
func Write(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o600)
}

// Project puts files into a folder as a kubelet does: by a link to where they are,
// so that all of them change at once.
func Project(at string, files map[string][]byte) error {
	if len(files) == 0 {
		return nil
	}
	dir, err := os.MkdirTemp(at, "..")
	if err != nil {
		return err
	}
	for name, data := range files {
		if err := Write(filepath.Join(dir, name), data); err != nil {
			return err
		}
	}
	was, _ := os.Readlink(filepath.Join(at, dataLink))
	next := filepath.Join(at, "..next")
	if err := errors.Join(os.Symlink(filepath.Base(dir), next), os.Rename(next, filepath.Join(at, dataLink))); err != nil {
		return err
	}
	for name := range files {
		first, _, _ := strings.Cut(name, "/")
		if err := os.Symlink(filepath.Join(dataLink, first), filepath.Join(at, first)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if was != "" {
		return os.RemoveAll(filepath.Join(at, was))
	}
	return nil
}

// dataLink leads to the files of today.
const dataLink = "..data"

// Same tells whether a folder holds these files.
func Same(at string, files map[string][]byte) bool {
	for name, data := range files {
		if have, err := os.ReadFile(filepath.Join(at, name)); err != nil || !bytes.Equal(have, data) {
			return false
		}
	}
	return true
}

// Volume is what lies in one; nothing where it is empty, or of a kind that is not
// played.
func Volume(ctx context.Context, client kubernetes.Interface, namespace string, v corev1.Volume) (map[string][]byte, error) {
	files := map[string][]byte{}
	var items []corev1.KeyToPath
	switch {
	case v.ConfigMap != nil:
		held, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return nil, missing(err, v.ConfigMap.Optional)
		}
		for name, text := range held.Data {
			files[name] = []byte(text)
		}
		items = v.ConfigMap.Items
	case v.Secret != nil:
		held, err := client.CoreV1().Secrets(namespace).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return nil, missing(err, v.Secret.Optional)
		}
		files, items = held.Data, v.Secret.Items
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			one := corev1.Volume{}
			switch {
			case s.ConfigMap != nil:
				one.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: s.ConfigMap.LocalObjectReference, Items: s.ConfigMap.Items}
			case s.Secret != nil:
				one.Secret = &corev1.SecretVolumeSource{SecretName: s.Secret.Name, Items: s.Secret.Items}
			}
			more, err := Volume(ctx, client, namespace, one)
			if err != nil {
				return nil, err
			}
			for name, data := range more {
				files[name] = data
			}
		}
	}
	if len(items) == 0 {
		return files, nil
	}
	chosen := map[string][]byte{}
	for _, item := range items {
		data, ok := files[item.Key]
		if !ok {
			return nil, fmt.Errorf("%w: references non-existent config key: %s", ErrWaits, item.Key)
		}
		chosen[item.Path] = data
	}
	return chosen, nil
}

// missing is what a volume of something waits for that is not there; nothing, where it
// may be away.
func missing(err error, optional *bool) error {
	switch {
	case !apierrors.IsNotFound(err):
		return err
	case optional != nil && *optional:
		return nil
	}
	return fmt.Errorf("%w: MountVolume.SetUp failed: %w", ErrWaits, err)
}
