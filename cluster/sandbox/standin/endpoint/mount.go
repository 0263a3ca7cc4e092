package endpoint

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster/sandbox/standin/podfiles"
)

// mount writes a pod's mounted files below dir, readable only by their owner. mounts maps mount paths to paths on this
// machine. conf is the pod's nginx.conf. If the pod mounts only server blocks, the image would include them in its own
// configuration. In that case conf is a minimal nginx.conf that includes the blocks.
func (p *Player) mount(
	ctx context.Context, pod *corev1.Pod, dir string,
) (mounts map[string]string, conf string, blocks []string, err error) {
	mounts = map[string]string{}
	held := map[string]map[string][]byte{} // by volume and file name
	for _, v := range pod.Spec.Volumes {
		if held[v.Name], err = podfiles.Volume(ctx, p.client, pod.Namespace, v); err != nil {
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
				if err := podfiles.Write(at, files[m.SubPath]); err != nil {
					return nil, "", nil, err
				}
				continue
			}
			if err := os.MkdirAll(at, 0o700); err != nil {
				return nil, "", nil, err
			}
			if err := podfiles.Project(at, files); err != nil {
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

// included reports whether the image's nginx.conf includes the mounted files.
func included(m corev1.VolumeMount) bool { return strings.HasSuffix(m.MountPath, "/server_blocks") }

// refresh updates a pod's mounted files, as a kubelet does within about a minute. It skips files mounted by subPath,
// and files that nginx reads only at startup. Deleted files remain.
func (p *Player) refresh(ctx context.Context, pod *corev1.Pod, dir string) error {
	for _, v := range pod.Spec.Volumes {
		files, err := podfiles.Volume(ctx, p.client, pod.Namespace, v)
		if errors.Is(err, podfiles.ErrWaits) || len(files) == 0 {
			continue
		}
		if err != nil {
			return err
		}
		for _, c := range pod.Spec.Containers {
			for _, m := range c.VolumeMounts {
				at := filepath.Join(dir, "root", m.MountPath)
				if m.Name != v.Name || m.SubPath != "" || included(m) || podfiles.Same(at, files) {
					continue
				}
				if _, err := os.Stat(at); err != nil { // the file did not exist at startup, so no program reads it
					continue
				}
				if err := podfiles.Project(at, files); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
