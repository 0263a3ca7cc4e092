package plane

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"carrick/cluster/sandbox/roles"
)

// writeKubeconfigs writes a kubeconfig for the user and one for each component. It also sets p.Kubeconfig and p.Config.
func (p *Plane) writeKubeconfigs() error {
	p.Kubeconfig = filepath.Join(p.sandbox, p.Name+".kubeconfig")
	if err := p.writeKubeconfig(p.Kubeconfig, p.Context()+"-admin", masters); err != nil {
		return err
	}
	users := map[string][]string{
		roles.ControllerManager: nil,
		roles.Scheduler:         nil,
		roles.Kwok:              {masters}, // creates nodes and updates all pods
	}
	for name, groups := range users {
		if err := p.writeKubeconfig(p.file(name+".kubeconfig"), "system:"+name, groups...); err != nil {
			return err
		}
	}
	var err error
	if p.Config, err = clientcmd.BuildConfigFromFlags("", p.Kubeconfig); err != nil {
		return err
	}
	p.Config.QPS = -1                           // no client-side limit: API Priority and Fairness is enough
	p.Config.WarningHandler = rest.NoWarnings{} // kubectl, which can run in this process, sets the default handler
	return nil
}

// writeKubeconfig writes a self-contained kubeconfig with one context.
func (p *Plane) writeKubeconfig(path, user string, groups ...string) error {
	pair, err := p.secrets.authority.Client(user, groups...)
	if err != nil {
		return err
	}
	config := api.NewConfig()
	config.Clusters[p.Context()] = &api.Cluster{
		Server:                   fmt.Sprintf("https://127.0.0.1:%d", p.port),
		CertificateAuthorityData: p.secrets.authority.Cert,
	}
	config.AuthInfos[user] = &api.AuthInfo{ClientCertificateData: pair.Cert, ClientKeyData: pair.Key}
	config.Contexts[p.Context()] = &api.Context{Cluster: p.Context(), AuthInfo: user}
	config.CurrentContext = p.Context()
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}
