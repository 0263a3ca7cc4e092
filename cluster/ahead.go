package cluster

import "strings"

// serverAndCA is what has to be the same for two clusters to share connections.
type serverAndCA struct{ server, ca string }

func sharedBy(server string, ca []byte) serverAndCA {
	return serverAndCA{server, strings.TrimSpace(string(ca))}
}

// Ahead opens a connection to an address of this cluster's API server, with the
// same CA, for what As is going to make of a kubeconfig that is not known yet:
// its first request then need not wait for one. Nobody waits for it, and no
// credentials go over it but those of that kubeconfig. An address that turns
// out to be another costs a connection that nobody uses.
func (c *Cluster) Ahead(server string) {
	at := sharedBy(server, c.CA())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.ahead[at] != nil || !strings.HasPrefix(server, "https://") {
		return
	}
	cfg, err := configOf(Kubeconfig{Server: server, CA: []byte(at.ca)})
	if err != nil {
		return // As says what is wrong with it
	}
	stranger, err := open(cfg, Access{Timeout: c.timeout}, c.options, nil)
	if err != nil {
		return
	}
	c.ahead[at] = stranger
	stranger.work.Go(func() { _, _ = stranger.version(stranger.life) }) // its answer is of no interest
}

// aheadOf is the connection that was opened ahead for a kubeconfig; nil where
// there is none. One that signs in on the connection itself, by a client
// certificate, gets its own. The caller holds the mutex.
func (c *Cluster) aheadOf(k Kubeconfig) *Cluster {
	if len(k.ClientCert) > 0 || k.ProxyURL != "" || k.TLSServerName != "" {
		return nil
	}
	return c.ahead[sharedBy(k.Server, k.CA)]
}
