package interlink

import (
	"strings"
	"testing"
)

func TestNginxConf(t *testing.T) {
	text, err := proxyConf.encode()
	if err != nil {
		t.Fatal(err)
	}
	all, err := readNginx(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for name, want := range map[string]string{
		"proxy_pass": "https://kubernetes.default.svc:443", "proxy_read_timeout": "3600s", "proxy_buffering": "off",
		"client_max_body_size": "0", "proxy_ssl_verify": "on", "listen": "60443", "ssl_certificate": "/tls/$pair.crt",
	} {
		got := every(all, name)
		if len(got) != 1 || len(got[0].words) < 2 || got[0].words[1].bare() != want {
			t.Errorf("%s is %v, not %s", name, got, want)
		}
	}
	if n := len(every(all, "location")); n != 2 {
		t.Errorf("%d locations", n)
	}
}

// encode rejects values that nginx's configuration cannot contain literally, and other invalid values.
func TestNginxRefuses(t *testing.T) {
	for name, change := range map[string]func(*nginxConf){
		"a variable":    func(c *nginxConf) { c.name = "$host" },
		"a line break":  func(c *nginxConf) { c.kubeCA = "/kube/\nca.crt" },
		"no port":       func(c *nginxConf) { c.upstream = "kubernetes.default.svc" },
		"a low port":    func(c *nginxConf) { c.listen = 443 },
		"no time":       func(c *nginxConf) { c.readAfter = 0 },
		"a bad host":    func(c *nginxConf) { c.upstream = ":443" },
		"a bad folder":  func(c *nginxConf) { c.temp = "/$tmp" },
		"a dollar path": func(c *nginxConf) { c.tls = "/a$b" },
	} {
		c := proxyConf
		change(&c)
		if text, err := c.encode(); err == nil {
			t.Errorf("%s is taken:\n%s", name, text)
		}
	}
	c := proxyConf
	c.name = `a"; } evil {`
	text, err := c.encode()
	if err != nil {
		t.Fatal(err)
	}
	all, err := readNginx(text)
	if err != nil || len(every(all, "evil")) > 0 {
		t.Errorf("a name breaks out of its quotes: %v\n%s", err, text)
	}
}

func FuzzReadNginx(f *testing.F) {
	text, _ := proxyConf.encode()
	f.Add(text)
	f.Add("set  https://kubernetes:443;\nproxy_pass ;")
	f.Add("\f") // a word: nginx knows four blanks
	f.Add(`a "b\" c" 'd' ${e}; #f` + "\n{}")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := readNginx(text)
		if err != nil && strings.Trim(text, " \t\r\n") == "" {
			t.Errorf("nothing is an error: %v", err)
		}
		every(all, "proxy_pass")
	})
}
