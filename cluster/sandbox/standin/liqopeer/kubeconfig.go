package liqopeer

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// remoteWithin is the timeout for requests to another cluster.
const remoteWithin = 3 * time.Second

// kubeconfig returns an Identity's self-contained kubeconfig.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/authentication/forge/kubeconfig.go.
func kubeconfig(cluster string, p *authParams, key []byte) ([]byte, error) {
	if p == nil {
		return nil, errors.New("the identity has no credentials yet")
	}
	config := api.NewConfig()
	config.Clusters[cluster] = &api.Cluster{Server: p.APIServer, CertificateAuthorityData: p.CA}
	config.AuthInfos[cluster] = &api.AuthInfo{ClientCertificateData: p.SignedCRT, ClientKeyData: key}
	config.Contexts[cluster] = &api.Context{Cluster: cluster, AuthInfo: cluster}
	config.CurrentContext = cluster
	return clientcmd.Write(*config)
}

// connect parses a self-contained kubeconfig. It rejects a kubeconfig that references files or credential plugins,
// because these would not exist in a pod.
func connect(data []byte) (*rest.Config, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, err
	}
	for name, c := range config.Clusters {
		if c.CertificateAuthority != "" {
			return nil, fmt.Errorf("cluster %q names the file %s", name, c.CertificateAuthority)
		}
	}
	for name, u := range config.AuthInfos {
		switch {
		case u.ClientCertificate != "" || u.ClientKey != "" || u.TokenFile != "":
			return nil, fmt.Errorf("user %q names a file", name)
		case u.Exec != nil || u.AuthProvider != nil:
			return nil, fmt.Errorf("user %q requires a login plugin", name)
		}
	}
	client, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	client.QPS = -1
	client.Timeout = remoteWithin
	return client, nil
}
