package interlink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"carrick/cluster/clean"
	"carrick/cluster/host"
	"carrick/steps"
	"carrick/steps/check"
)

// dataFolder returns where the plugin writes. It appends NAMESPACE-UID of a pod to
// DataRootFolder without a slash (interlink-hq/interlink-slurm-plugin: pkg/slurm/Create.go,
// f8451d93).
func dataFolder(ctx context.Context, e steps.Env) (string, error) {
	c, err := openPlugin(ctx, e)
	if errors.Is(err, fs.ErrNotExist) {
		return "", steps.Absent("%s does not exist on the edge node", pluginPath(e))
	}
	if err != nil {
		return "", err
	}
	dir := c.word("DataRootFolder")
	if dir == "" {
		return "", steps.Absent("%s has no DataRootFolder", pluginPath(e))
	}
	if !path.IsAbs(dir) {
		return "", steps.Absent(
			"DataRootFolder in %s is %s, which is relative to the folder where the plugin was started", pluginPath(e),
			clean.Text(dir),
		)
	}
	if !strings.HasSuffix(dir, "/") {
		return "", steps.Absent(
			"DataRootFolder in %s is %s without a trailing slash, so the plugin writes to %sNAMESPACE-UID, next to that folder",
			pluginPath(e), clean.Text(dir), clean.Text(dir),
		)
	}
	return path.Clean(dir), nil
}

// networked are file systems that several machines can mount.
var networked = []string{
	"nfs", "nfs4", "lustre", "beegfs", "gpfs", "ceph", "fuse.ceph", "cifs", "smb3", "glusterfs", "fuse.glusterfs", "gfs2",
	"ocfs2", "wekafs", "panfs", "orangefs", "pvfs2", "fhgfs", "9p", "virtiofs",
}

func pluginDataShared(ctx context.Context, e steps.Env) steps.Result {
	dir, err := dataFolder(ctx, e)
	if err != nil {
		return check.AbsentFails(err, onEdge("set DataRootFolder in "+pluginPath(e)+
			" to an absolute path that compute nodes share, with a trailing slash"))
	}
	kind, err := check.CommandOutput(
		ctx, e.Host, 5*time.Second, "findmnt", "--noheadings", "--output=FSTYPE", "--target="+dir,
	)
	if r, no := cannotRun(err, "findmnt --target="+steps.Quoted(dir)); no {
		return r
	}
	if err != nil {
		return steps.Errored(err)
	}
	kind = strings.TrimSpace(kind)
	if slices.Contains(networked, kind) {
		return steps.Passed("%s is on %s", dir, kind)
	}
	return steps.Warned(
		fmt.Sprintf(
			"%s is on %s of the edge node: compute nodes have other files at that path, unless the edge node exports it to them",
			dir, clean.Text(kind),
		),
		"on a compute node: ls -ld "+steps.Quoted(dir)+"    # or put DataRootFolder on a file system that they share",
	)
}

func pluginDataClosed(ctx context.Context, e steps.Env) steps.Result {
	dir, err := dataFolder(ctx, e)
	if err != nil {
		return check.AbsentFails(
			err, onEdge("set DataRootFolder in "+pluginPath(e)+" to an absolute path with a trailing slash"),
		)
	}
	info, err := e.Host.Stat(ctx, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return steps.Failed(dir+" does not exist on the edge node", onEdge("install -d -m 0700 "+steps.Quoted(dir)))
	}
	if err != nil {
		return steps.Errored(err)
	}
	mode := info.Mode.Perm()
	if mode&^0o750 == 0 {
		return steps.Passed("%s has mode %04o", dir, mode)
	}
	for above := path.Dir(dir); above != "/"; above = path.Dir(above) {
		info, err := e.Host.Stat(ctx, above)
		if err != nil {
			return steps.Errored(err)
		}
		if info.Mode.Perm()&0o007 == 0 {
			return steps.Passed("%s has mode %04o, but other users cannot enter %s", dir, mode, above)
		}
	}
	if e.Host.IsFolder() {
		return steps.Warned(
			fmt.Sprintf(
				"%s has mode %04o in the folder that stands for the edge node; if it has that mode there, other users can read "+
					"the tokens in it",
				dir, mode,
			),
			onEdge("chmod 0700 "+steps.Quoted(dir)),
		)
	}
	fix := onEdge("chmod 0700 " + steps.Quoted(dir))
	var others *host.FolderError // users who can write to them can redirect root to another folder
	if _, err := e.Host.Folder(dir); errors.As(err, &others) {
		fix = others.Error()
	}
	return steps.Failed(fmt.Sprintf("%s has mode %04o, so other users can read the tokens in it", dir, mode), fix)
}
