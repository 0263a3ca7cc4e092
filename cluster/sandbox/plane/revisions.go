package plane

import (
	"context"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Revisions returns the keys of all objects in etcd, each with its revision, which is the object's resourceVersion. A
// key is, for example, /registry/configmaps/default/kube-root-ca.crt.
func (p *Plane) Revisions(ctx context.Context) (map[string]string, error) {
	if p.store == nil {
		var err error
		p.store, err = clientv3.New(clientv3.Config{Endpoints: []string{p.etcd.URL.String()}, Logger: zap.NewNop()})
		if err != nil {
			return nil, err
		}
	}
	got, err := p.store.Get(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(got.Kvs))
	for _, kv := range got.Kvs {
		out[string(kv.Key)] = strconv.FormatInt(kv.ModRevision, 10)
	}
	return out, nil
}
