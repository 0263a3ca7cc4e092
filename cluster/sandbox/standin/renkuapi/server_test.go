package renkuapi

import (
	"net/http"
	"testing"
	"time"
)

func TestStartRefuses(t *testing.T) {
	local := newFakeCluster(t).config()
	for name, o := range map[string]Options{
		"no cluster":   {Namespace: "renku"},
		"no namespace": {Local: local},
		"no such fault": {
			Local: local, Namespace: "renku", Faults: map[string]bool{"nonsense": true},
		},
	} {
		if s, err := Start(t.Context(), o); err == nil {
			s.Close()
			t.Errorf("%s: it starts", name)
		}
	}
}

func TestItEnds(t *testing.T) {
	s := newSite(t)
	s.must(200, "GET", "/version", nil)
	host, port := s.SessionHost()
	if host != "localhost" || port == 0 {
		t.Errorf("%s %d", host, port)
	}
	s.client.CloseIdleConnections()
	s.Close()
	s.Close()
	client := http.Client{Transport: s.client.Transport, Timeout: time.Minute}
	if answer, err := client.Get("https://" + s.Domain() + apiPath + "/version"); err == nil {
		answer.Body.Close()
		t.Error("it still answers")
	}
}
