package endpoint

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
)

// mount writes the files that a pod sees below dir, readable by their owner alone,
// and returns where its mounts are, and its nginx.conf. Server blocks that an image
// includes into its own configuration are included into a small one.
func (p *Player) mount(ctx context.Context, pod *corev1.Pod, dir string) (mounts map[string]string, conf string, blocks []string, err error) {
	mounts = map[string]string{}
	held := map[string]map[string][]byte{} // by volume
	for _, v := range pod.Spec.Volumes {
		if held[v.Name], err = p.volume(ctx, pod.Namespace, v); err != nil {
			return nil, "", nil, err
		}
	}
	for _, c := range pod.Spec.Containers {
		for _, m := range c.VolumeMounts {
			at := filepath.Join(dir, "root", m.MountPath)
			files := held[m.Name]
			mounts[m.MountPath] = at
			if text, ok := files[confKey]; ok {
				conf = string(text)
			}
			if m.SubPath != "" {
				if err := write(at, files[m.SubPath]); err != nil {
					return nil, "", nil, err
				}
				continue
			}
			if err := os.MkdirAll(at, 0o700); err != nil {
				return nil, "", nil, err
			}
			if err := project(at, files); err != nil {
				return nil, "", nil, err
			}
			for name := range files {
				if included(m) {
					blocks = append(blocks, filepath.Join(m.MountPath, name))
				}
			}
		}
	}
	if conf == "" && len(blocks) > 0 {
		conf = "pid /tmp/nginx.pid;\nevents {}\nhttp {\n"
		for _, name := range blocks {
			conf += "include " + name + ";\n"
		}
		conf += "}\n"
		mounts["/tmp"] = filepath.Join(dir, "root", "tmp")
		err = os.MkdirAll(mounts["/tmp"], 0o700)
	}
	if conf == "" && err == nil {
		err = errors.New("stand-in: the pod mounts no " + confKey)
	}
	return mounts, conf, blocks, err
}

func write(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o600)
}

// included tells whether nginx reads what is mounted there as its configuration.
func included(m corev1.VolumeMount) bool { return strings.HasSuffix(m.MountPath, "/server_blocks") }

// project puts files into a folder as a kubelet does: by a link to where they are,
// so that all of them change at once.
func project(at string, files map[string][]byte) error {
	if len(files) == 0 {
		return nil
	}
	dir, err := os.MkdirTemp(at, "..")
	if err != nil {
		return err
	}
	for name, data := range files {
		if err := write(filepath.Join(dir, name), data); err != nil {
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

// refresh brings what a pod mounts up to date, as a kubelet does in a minute or
// so: but for what is mounted by subPath, and for what nginx reads only when it
// starts. What is gone stays as it was.
func (p *Player) refresh(ctx context.Context, pod *corev1.Pod, dir string) error {
	for _, v := range pod.Spec.Volumes {
		files, err := p.volume(ctx, pod.Namespace, v)
		if errors.Is(err, errWaits) || len(files) == 0 {
			continue
		}
		if err != nil {
			return err
		}
		for _, c := range pod.Spec.Containers {
			for _, m := range c.VolumeMounts {
				at := filepath.Join(dir, "root", m.MountPath)
				if m.Name != v.Name || m.SubPath != "" || included(m) || same(at, files) {
					continue
				}
				if _, err := os.Stat(at); err != nil { // it was never mounted: nobody plays what is in there
					continue
				}
				if err := project(at, files); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// same tells whether a folder holds these files.
func same(at string, files map[string][]byte) bool {
	for name, data := range files {
		if have, err := os.ReadFile(filepath.Join(at, name)); err != nil || !bytes.Equal(have, data) {
			return false
		}
	}
	return true
}

// volume is what lies in one; nothing where it is empty, or of a kind that is not
// played.
func (p *Player) volume(ctx context.Context, namespace string, v corev1.Volume) (map[string][]byte, error) {
	files := map[string][]byte{}
	var items []corev1.KeyToPath
	switch {
	case v.ConfigMap != nil:
		held, err := p.client.CoreV1().ConfigMaps(namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return nil, missing(err)
		}
		for name, text := range held.Data {
			files[name] = []byte(text)
		}
		items = v.ConfigMap.Items
	case v.Secret != nil:
		held, err := p.client.CoreV1().Secrets(namespace).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return nil, missing(err)
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
			more, err := p.volume(ctx, namespace, one)
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
			return nil, fmt.Errorf("%w: references non-existent config key: %s", errWaits, item.Key)
		}
		chosen[item.Path] = data
	}
	return chosen, nil
}

func missing(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: MountVolume.SetUp failed: %w", errWaits, err)
	}
	return err
}
