package kubeconfig

import (
	"encoding/base64"
	"errors"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"carrick/cluster/bearer"
	"carrick/cluster/masked"
	"carrick/cluster/probe"
)

// refuseCluster reports forbidden keys of a cluster entry, even if the current context does not use the entry.
func (p *parser) refuseCluster(name string, f settings) {
	if n := f["certificate-authority"]; n != nil && p.file == nil {
		p.say(
			n, RuleFileReference, "cluster %q reads its CA from a file: put it in certificate-authority-data",
			name,
		)
	}
	if p.truth(f, "insecure-skip-tls-verify") {
		p.say(f["insecure-skip-tls-verify"], RuleInsecure, "cluster %q does not verify the server's certificate", name)
	}
	p.truth(f, "disable-compression")
}

// refuseUser reports forbidden keys of a user entry, even if the current context does not use the entry.
func (p *parser) refuseUser(name string, f settings) {
	for _, refused := range []struct{ key, rule, words string }{
		{
			"client-certificate", RuleFileReference,
			"reads its client certificate from a file: put it in client-certificate-data",
		},
		{"client-key", RuleFileReference, "reads its client key from a file: put it in client-key-data"},
		{"tokenFile", RuleFileReference, "reads its token from a file: put it in token"},
		{"exec", RuleExec, "runs a command to log in"},
		{"auth-provider", RuleAuthProvider, "logs in through an auth-provider plugin"},
		{"username", RuleBasicAuth, "logs in with a user name, which API servers no longer support"},
		{"password", RuleBasicAuth, "logs in with a password, which API servers no longer support"},
		{"as", RuleImpersonation, "impersonates another user"},
		{"as-uid", RuleImpersonation, "impersonates another user"},
		{"as-groups", RuleImpersonation, "impersonates other groups"},
		{"as-user-extra", RuleImpersonation, "impersonates another user"},
	} {
		if n := f[refused.key]; n != nil && (p.file == nil || refused.rule != RuleFileReference) {
			p.say(n, refused.rule, "user %q %s (%s)", name, refused.words, refused.key)
		}
	}
}

// chosen returns the Config of the current context, with its cluster and its user.
func (p *parser) chosen(config settings, clusters, users, contexts map[string]settings) Config {
	var k Config
	if k.Name = p.text(config, "current-context"); k.Name == "" {
		p.say(nil, RuleNoCurrentContext, "current-context is not set")
		return k
	}
	context, ok := contexts[k.Name]
	if !ok {
		p.say(config["current-context"], RuleUnknownContext, "current-context is %q, which does not exist", k.Name)
		return k
	}
	k.Namespace = p.text(context, "namespace")
	if f := p.follow(context, "cluster", RuleNoCluster, k.Name, clusters); f != nil {
		p.cluster(&k, f)
	}
	if f := p.follow(context, "user", RuleNoUser, k.Name, users); f != nil {
		p.user(&k, f)
	}
	return k
}

func (p *parser) follow(context settings, key, rule, name string, among map[string]settings) settings {
	want := p.text(context, key)
	if want == "" {
		p.say(context[key], rule, "context %q has no %s", name, key)
		return nil
	}
	f, ok := among[want]
	if !ok {
		p.say(context[key], rule, "context %q names the %s %q, which does not exist", name, key, want)
	}
	return f
}

func (p *parser) cluster(k *Config, f settings) {
	p.inline(f, "certificate-authority")
	k.Server = p.text(f, "server")
	k.TLSServerName = p.text(f, "tls-server-name")
	k.ProxyURL = p.text(f, "proxy-url")
	p.server(k.Server, f["server"])
	p.proxy(k.ProxyURL, f["proxy-url"])
	if k.CA = p.data(f, "certificate-authority-data"); k.CA != nil {
		_, err := probe.ParseCerts(k.CA)
		p.material(f["certificate-authority-data"], RuleBadCA, "certificate-authority-data", err)
	}
}

func (p *parser) server(server string, at *yaml.Node) {
	u, err := url.Parse(server)
	switch {
	case server == "":
		p.say(at, RuleNoServer, "the cluster has no server")
	case err != nil:
		p.say(at, RuleBadServer, "the server is not a URL")
	case u.Scheme != "https":
		p.say(at, RuleNotHTTPS, "the server %q is not an https URL", u.Redacted())
	case u.Hostname() == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		p.say(at, RuleBadServer, "the server %q must be only scheme, host and port", u.Redacted())
	}
}

func (p *parser) proxy(proxy string, at *yaml.Node) {
	if proxy == "" {
		return
	}
	u, err := url.Parse(proxy)
	switch {
	case err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme):
		p.say(at, RuleBadProxy, "proxy-url is not the URL of an http, https or socks5 proxy")
	case u.User != nil:
		p.say(at, RuleBadProxy, "proxy-url contains a user name or a password")
	}
}

func (p *parser) user(k *Config, f settings) {
	p.inline(f, "client-certificate", "client-key")
	p.inlineToken(f)
	token := p.text(f, "token")
	k.Token = masked.New(token)
	p.token(f["token"], token)
	key := p.data(f, "client-key-data")
	k.ClientCert, k.ClientKey = p.data(f, "client-certificate-data"), masked.New(string(key))
	switch {
	case k.ClientCert != nil && key != nil:
		p.pair(f, k.ClientCert, key)
	case k.ClientCert != nil && f["client-key"] == nil:
		p.say(f["client-certificate-data"], RuleBadClientCert, "client-certificate-data is set, but client-key-data is not")
	case key != nil && f["client-certificate"] == nil:
		p.say(f["client-key-data"], RuleBadClientCert, "client-key-data is set, but client-certificate-data is not")
	}
	for _, other := range []string{
		"token", "tokenFile", "exec", "auth-provider", "username", "password",
		"client-certificate", "client-certificate-data", "client-key", "client-key-data",
	} {
		if f[other] != nil {
			return
		}
	}
	p.say(nil, RuleNoCredentials, "context %q has neither a token nor a client certificate", k.Name)
}

func (p *parser) token(at *yaml.Node, token string) {
	if at == nil || at.ShortTag() != "!!str" {
		return
	}
	_, err := bearer.Parse(masked.New(token))
	switch {
	case token == "":
		p.say(at, RuleNoCredentials, "the token is empty")
	case errors.Is(err, bearer.ErrDoubleBase64):
		p.say(at, RuleDoubleBase64, "the token is base64-encoded twice")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		p.say(at, RuleBadToken, "the token contains white space or other invalid characters")
	}
}

func (p *parser) pair(f settings, cert, key []byte) {
	certs, err := probe.ParseCerts(cert)
	p.material(f["client-certificate-data"], RuleBadClientCert, "client-certificate-data", err)
	if err == nil {
		p.material(f["client-key-data"], RuleBadClientCert, "client-key-data", probe.KeyMatches(certs[0], key))
	}
}

func (p *parser) material(at *yaml.Node, rule, key string, err error) {
	switch {
	case errors.Is(err, probe.ErrDoubleBase64):
		p.say(at, RuleDoubleBase64, "%s is base64-encoded twice", key)
	case err != nil:
		p.say(at, rule, "%s: %v", key, err)
	}
}

// data decodes the base64 value of a key. It returns nil if the key does not exist or its value cannot be decoded.
func (p *parser) data(f settings, key string) []byte {
	text := p.text(f, key)
	if text == "" {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		rule := RuleBadClientCert
		if strings.HasPrefix(key, "certificate-authority") {
			rule = RuleBadCA
		}
		p.say(f[key], rule, "%s is not base64", key)
		return nil
	}
	return data
}
