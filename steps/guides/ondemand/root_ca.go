package ondemand

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"carrick/cluster/clean"
	"carrick/cluster/host"
	"carrick/cluster/probe"
	"carrick/steps"
)

func caFileReadable(ctx context.Context, e steps.Env) steps.Result {
	want, err := e.Peer.Text("cluster-ca")
	if err != nil {
		return steps.Errored(err)
	}
	at, have, err := rootsCA(ctx, e)
	if errors.Is(err, fs.ErrNotExist) {
		return steps.Undone(at + " does not exist")
	}
	if err != nil {
		return steps.Errored(err)
	}
	ours, err := probe.ParseCerts(have)
	if err != nil {
		return steps.Failed(at+": "+err.Error(), "")
	}
	theirs, err := probe.ParseCerts([]byte(want))
	if err != nil {
		return steps.Errored(fmt.Errorf("parsing the cluster's CA: %w", err))
	}
	for _, c := range theirs {
		if !slices.ContainsFunc(ours, c.Equal) {
			return steps.Failed(
				at+" is not the cluster's CA: it contains "+certificateName(ours[0])+", not certificate "+certificateName(c)+
					" with the expected key",
				"",
			)
		}
	}
	if at == clusterCA {
		if r := readableByAll(ctx, e, at); r.Status != steps.Pass {
			return r
		}
		if more := extraInCA(have, ours, theirs); more != "" && string(have) != want {
			return steps.Warned(at+" contains more than the cluster's CA: "+more, "")
		}
	}
	return steps.Passed("%s, valid until %s", at, ours[0].NotAfter.UTC().Format("2 January 2006"))
}

// extraInCA returns what the CA file contains in addition to the wanted certificates, or "" if it contains nothing
// else. have is the content of the file. ours lists the certificates in it.
func extraInCA(have []byte, ours, wanted []*x509.Certificate) string {
	var encoded []byte
	for _, c := range ours {
		if !slices.ContainsFunc(wanted, c.Equal) {
			return "the certificate " + certificateName(c)
		}
		encoded = append(encoded, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	if !bytes.Equal(bytes.Join(bytes.Fields(have), nil), bytes.Join(bytes.Fields(encoded), nil)) {
		return "text that is not a certificate"
	}
	return ""
}

// rootsCA returns the CA with which root verifies the API server, and the path of its file. This is the CA file that
// carrick writes, or else the CA in root's kubeconfig.
func rootsCA(ctx context.Context, e steps.Env) (at string, pem []byte, err error) {
	pem, err = e.Host.Read(ctx, clusterCA)
	if !errors.Is(err, fs.ErrNotExist) {
		return clusterCA, pem, err
	}
	in, used, broken := readRootKubeconfig(ctx, e)
	switch {
	case broken != nil || in.CAFile == clusterCA:
		return clusterCA, nil, err
	case in.CA != nil:
		return used.Path, in.CA, nil
	case in.CAFile != "":
		at = kubeconfigPath(used.Path, in.CAFile)
		pem, err = e.Host.Read(ctx, at)
		return at, pem, err
	}
	return clusterCA, nil, err
}

func readableByAll(ctx context.Context, e steps.Env, at string) steps.Result {
	info, err := e.Host.Stat(ctx, at)
	if err != nil {
		return steps.Errored(err)
	}
	if info.Mode.Perm()&0o004 == 0 {
		return steps.Failed(
			fmt.Sprintf("%s has mode %04o: users cannot read it", at, info.Mode.Perm()), permissionFix(e, at, "chmod 0644 %s"),
		)
	}
	foreign := (*host.FolderError)(nil)
	if _, err := e.Host.RootsAlone(at); errors.As(err, &foreign) {
		return steps.Failed(fmt.Sprintf("users other than root can replace %s because they can write to %s", at, clean.Text(foreign.Path)),
			permissionFix(e, at, "chmod 0644 %s")).WithoutAction()
	}
	problem, open, err := access(ctx, e, at)
	switch {
	case err != nil:
		return steps.Errored(err)
	case problem != "":
		return steps.Failed(problem, onWebNode(open)).WithoutAction()
	}
	return steps.Passed("%s", at)
}

func certificateName(c *x509.Certificate) string {
	return fmt.Sprintf("%q", clean.Text(c.Subject.CommonName))
}
