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

// dataFolder returns the directory in which the plugin writes the pods' data. The plugin appends a pod's NAMESPACE-UID
// to DataRootFolder without adding a slash (interlink-hq/interlink-slurm-plugin: pkg/slurm/Create.go, f8451d93).
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
			"DataRootFolder in %s is %s, which is relative to the plugin's working directory", pluginPath(e),
			clean.Text(dir),
		)
	}
	if !strings.HasSuffix(dir, "/") {
		return "", steps.Absent(
			"DataRootFolder in %s is %s without a trailing slash, so the plugin writes to %sNAMESPACE-UID, next to "+
				"that directory",
			pluginPath(e), clean.Text(dir), clean.Text(dir),
		)
	}
	return path.Clean(dir), nil
}

// networked lists the types of file systems that several machines can mount.
var networked = []string{
	"nfs", "nfs4", "lustre", "beegfs", "gpfs", "ceph", "fuse.ceph", "cifs", "smb3", "glusterfs", "fuse.glusterfs", "gfs2",
	"ocfs2", "wekafs", "panfs", "orangefs", "pvfs2", "fhgfs", "9p", "virtiofs",
}

func pluginDataShared(ctx context.Context, e steps.Env) steps.Result {
	dir, err := dataFolder(ctx, e)
	if err != nil {
		return check.AbsentFails(err, "on the edge node, set DataRootFolder in "+pluginPath(e)+
			" to an absolute path that compute nodes share, with a trailing slash")
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
			"%s is on the %s file system of the edge node: compute nodes have other files at that path, unless the edge node "+
				"exports the directory to them",
			dir, clean.Text(kind),
		),
		"on a compute node: ls -ld "+steps.Quoted(dir)+
			"    # or put DataRootFolder on a file system that compute nodes share",
	)
}

func pluginDataClosed(ctx context.Context, e steps.Env) steps.Result {
	dir, err := dataFolder(ctx, e)
	if err != nil {
		return check.AbsentFails(
			err, "on the edge node, set DataRootFolder in "+pluginPath(e)+" to an absolute path with a trailing slash",
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
				"%s has mode %04o in the local directory that stands for the edge node. With the same mode on the edge node, "+
					"other users can read the tokens in it",
				dir, mode,
			),
			onEdge("chmod 0700 "+steps.Quoted(dir)),
		)
	}
	fix := onEdge("chmod 0700 " + steps.Quoted(dir))
	var others *host.FolderError // another user can replace a directory in the path and redirect the chmod
	if _, err := e.Host.Folder(dir); errors.As(err, &others) {
		fix = others.Error()
	}
	return steps.Failed(fmt.Sprintf("%s has mode %04o, so other users can read the tokens in it", dir, mode), fix)
}
