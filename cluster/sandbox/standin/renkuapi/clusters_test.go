package renkuapi

import (
	"cmp"
	"net/http"
	"strings"
	"testing"
)

// refusals lists requests that the API must reject.
type refusals []struct {
	name, method, path string
	body               any
	status             int
	message            string // part of it
}

// play sends each request and verifies the error. The error code is always 1000 + status.
func (r refusals) play(t *testing.T, s *site) {
	for _, row := range r {
		t.Run(row.name, func(t *testing.T) {
			got := s.call(cmp.Or(row.method, "POST"), row.path, row.body)
			if got.status != row.status || got.code != 1000+row.status || !strings.Contains(got.message, row.message) ||
				row.message == "" {
				t.Errorf("%d %d %q, want %d with %q", got.status, got.code, got.message, row.status, row.message)
			}
		})
	}
}

func TestClusterRefusals(t *testing.T) {
	s := newSite(t)
	// A cluster that is good but for one key.
	but := func(key string, value any) object {
		return with(guideCluster(), object{key: value})
	}
	long := func(n int) string { return strings.Repeat("a", n) }
	const fields = "There are errors in the following fields, "
	wrong := func(key, why string) string { return fields + key + ": " + why }
	table := refusals{
		{"no JSON", "", "/clusters", "{", 400, "parsing body"},
		{"two documents", "", "/clusters", "{} {}", 400, "parsing body"},
		{"a list", "", "/clusters", "[]", 422, "the provided input has the wrong type"},
		{"null", "", "/clusters", "null", 422, "the provided input has the wrong type"},
		{
			"an unknown key", "", "/clusters", but("session_url", "x"), 422,
			wrong("session_url", "Extra inputs are not permitted"),
		},
		{"an id", "", "/clusters", but("id", "01J00000000000000000000000"), 422, wrong("id", "Extra")},
		{"short name", "", "/clusters", but("name", "four"), 422, wrong("name", "String should have at least 5")},
		{
			"name of 41", "", "/clusters", but("name", long(41)), 500,
			"Database error occurred: value too long for type character varying(40)",
		},
		{"name is a number", "", "/clusters", but("name", 12345), 422, wrong("name", "Input should be a valid string")},
		{
			"config_name without .yaml", "", "/clusters", but("config_name", "bern.yml"), 422,
			wrong("config_name", "String should match"),
		},
		{
			"config_name with a slash", "", "/clusters", but("config_name", "a/bern.yaml"), 422,
			wrong("config_name", "String should match"),
		},
		{
			"config_name of 41", "", "/clusters", but("config_name", long(36)+".yaml"), 500,
			"Database error occurred: value too long",
		},
		{
			"protocol", "", "/clusters", but("session_protocol", "ftp"), 422,
			wrong("session_protocol", "Input should be 'http' or 'https'"),
		},
		{
			"host of 257", "", "/clusters", but("session_host", long(257)), 422,
			wrong("session_host", "String should have at most 256"),
		},
		{
			"host with a scheme", "", "/clusters", but("session_host", "https://x.org"), 422,
			wrong("session_host", "String should match"),
		},
		{"host that is empty", "", "/clusters", but("session_host", ""), 422, wrong("session_host", "String should match")},
		{
			"port -1", "", "/clusters", but("session_port", -1), 422,
			wrong("session_port", "Input should be greater than or equal to 0"),
		},
		{
			"port 65537", "", "/clusters", but("session_port", 65537), 422,
			wrong("session_port", "Input should be less than or equal to 65536"),
		},
		{
			"port as text", "", "/clusters", but("session_port", "443"), 422,
			wrong("session_port", "Input should be a valid integer"),
		},
		{
			"half a port", "", "/clusters", but("session_port", 1.5), 422,
			wrong("session_port", "Input should be a valid integer"),
		},
		{"path is null", "", "/clusters", `{"session_path":null}`, 422, "session_path: Input should be a valid string"},
		{
			"annotations as a list", "", "/clusters", but("session_ingress_annotations", []any{}), 422,
			wrong("session_ingress_annotations", "Input"),
		},
		{
			"ingress class of 257", "", "/clusters", but("session_ingress_class_name", long(257)), 422,
			wrong("session_ingress_class_name", "String"),
		},
		{
			"storage class of 257", "", "/clusters", but("session_storage_class", long(257)), 422,
			wrong("session_storage_class", "String"),
		},
		{
			"TLS Secret of 257", "", "/clusters", but("session_tls_secret_name", long(257)), 422,
			wrong("session_tls_secret_name", "String"),
		},
		{"account of 1", "", "/clusters", but(accountName, "a"), 422, wrong(accountName, "String should match")},
		{
			"account of 64", "", "/clusters", but(accountName, long(64)), 422,
			wrong(accountName, "String should have at most 63"),
		},
		{"account with a capital", "", "/clusters", but(accountName, "Ab"), 422, wrong(accountName, "String should match")},
		{"flag as text", "", "/clusters", but(tlsFlag, "true"), 422, wrong(tlsFlag, "Input should be a valid boolean")},
		{
			"the name of another", "", "/clusters", but("name", "Paris"), 409,
			"because the name is already used, please try a different name.",
		},
		{
			"the config_name of another", "", "/clusters", but("config_name", "paris.yaml"), 409,
			"because the config_name is already used, please try a different one.",
		},
		{
			"a cluster that is not there", "GET", "/clusters/01J00000000000000000000000", nil, 404,
			"Cluster definition id='01J00000000000000000000000' does not exist.",
		},
		{"an id that is none", "GET", "/clusters/Paris", nil, 404, "not found"},
		{"PATCH of what is not there", "PATCH", "/clusters/01J00000000000000000000000", object{}, 404, "does not exist."},
		{"PUT of what is not there", "PUT", "/clusters/01J00000000000000000000000", guideCluster(), 404, "does not exist."},
		{"another path", "GET", "/cluster", nil, 404, "Requested URL /api/data/cluster not found"},
		{"another method", "DELETE", "/clusters", nil, 405, "Method DELETE not allowed"},
	}
	for _, f := range clusterSchema {
		if f.required {
			row := table[0]
			row.name, row.body, row.status, row.message = "without "+
				f.name, but(f.name, nil), 422, wrong(f.name, "Field required")
			table = append(table, row)
		}
	}
	table.play(t, s)
	if rows := s.must(200, "GET", "/clusters", nil).list(t); len(rows) != 1 {
		t.Errorf("there are %d clusters after nothing but refusals", len(rows))
	}
}

// The API accepts values that no Ingress accepts, so carrick itself must check them.
func TestClusterAPIDoesNotLook(t *testing.T) {
	s := newSite(t)
	for i, change := range []object{
		{"session_host": "host:443"},
		{"session_host": "_"},
		{"session_path": "no-slash/"},
		{"session_path": ""},
		{"session_ingress_annotations": object{"a": 1, "b": object{}}},
		{"session_port": 0},
		{"name": strings.Repeat("é", 40), "config_name": strings.Repeat("c", 35) + ".yaml"},
	} {
		body := with(
			guideCluster(), object{"name": "cluster " + string(rune('a'+i)), "config_name": string(rune('a'+i)) + ".yaml"},
		)
		s.must(http.StatusCreated, "POST", "/clusters", with(body, change))
	}
}

func TestTLSOfANewCluster(t *testing.T) {
	const absent = "absent"
	for _, row := range []struct {
		name           string
		protocol       string
		secret         any // nil: the key is left out
		flag           any
		status         int
		message        string
		secretAt, flat any // stored; absent: not in the answer
		newer          int // status where the flag is passed on
		newerFlag      any
	}{
		{"named", "https", "x", false, 201, "", "x", false, 201, false},
		{"named, no flag", "https", "x", nil, 201, "", "x", false, 201, false},
		{"the guide's", "https", "", true, 201, "", "", false, 500, nil},
		{"flag alone", "https", nil, true, 500, "check constraint", nil, nil, 201, true},
		{"neither, empty", "https", "", false, 422, "neither the TLS secret name nor the flag", nil, nil, 422, nil},
		{"neither", "https", nil, nil, 422, "Please set only one of these two options.", nil, nil, 422, nil},
		{"both", "https", "x", true, 422, "you have set both", nil, nil, 422, nil},
		{"http, nothing", "http", nil, nil, 201, "", absent, false, 201, false},
		{"http, both", "http", "x", true, 201, "", "x", false, 201, true},
		{"http, the guide's", "http", "", true, 201, "", "", false, 201, true},
	} {
		body := with(
			guideCluster(), object{"session_protocol": row.protocol, "session_tls_secret_name": row.secret, tlsFlag: row.flag},
		)
		t.Run(row.name, func(t *testing.T) {
			got := newSite(t).call("POST", "/clusters", body)
			if got.status != row.status || !strings.Contains(got.message, row.message) {
				t.Fatalf("%d %s, want %d %s", got.status, got.body, row.status, row.message)
			}
			if row.status != 201 {
				return
			}
			stored := got.object(t)
			secret, there := stored["session_tls_secret_name"]
			if row.secretAt == absent && there || row.secretAt != absent && secret != row.secretAt ||
				stored[tlsFlag] != row.flat {
				t.Errorf("stored %s", got.body)
			}
		})
		t.Run(row.name+", newer", func(t *testing.T) {
			got := newSite(t, "tls-null").call("POST", "/clusters", body)
			if got.status != row.newer || got.status == 500 && !strings.Contains(got.message, "check constraint") {
				t.Fatalf("%d %s, want %d", got.status, got.body, row.newer)
			}
			if got.status == 201 && got.object(t)[tlsFlag] != row.newerFlag {
				t.Errorf("stored %s", got.body)
			}
		})
	}
}

func TestTLSOfAClusterThatIsThere(t *testing.T) {
	s := newSite(t)
	id := s.must(201, "POST", "/clusters", guideCluster()).object(t)["id"].(string)
	const secretKey = "session_tls_secret_name"
	// In this order: each row stands on what the ones before have stored.
	for _, row := range []struct {
		name, method string
		body         object
		status       int
		message      string
		secret, flag any // stored after it; a nil secret: not in the answer
	}{
		{"the flag alone", "PATCH", object{tlsFlag: true}, 500, "check constraint", "", false},
		{"both keys", "PATCH", object{tlsFlag: true, secretKey: ""}, 201, "", nil, true},
		{"nothing", "PATCH", object{}, 201, "", nil, true},
		{"the guide's payload", "PUT", guideCluster(), 500, "check constraint", nil, true},
		{"a named Secret", "PATCH", object{secretKey: "x"}, 422, "with both", nil, true},
		{"a named Secret, no flag", "PATCH", object{secretKey: "x", tlsFlag: false}, 422, "with both", nil, true},
		{"a named Secret and the flag", "PATCH", object{secretKey: "x", tlsFlag: true}, 422, "cannot set both", nil, true},
		{"a named Secret", "PUT", with(guideCluster(), object{secretKey: "x", tlsFlag: false}), 422, "with both", nil, true},
		{"no flag", "PATCH", object{tlsFlag: false}, 500, "check constraint", nil, true},
		{"by way of http", "PATCH", object{"session_protocol": "http", secretKey: "x", tlsFlag: false}, 201, "", "x", false},
		{"and back", "PATCH", object{"session_protocol": "https"}, 201, "", "x", false},
		{"without", "PATCH", object{secretKey: ""}, 422, "without both", "x", false},
		{"the whole", "PUT", with(guideCluster(), object{secretKey: "y", tlsFlag: nil}), 201, "", "y", false},
		{"the flag alone", "PATCH", object{tlsFlag: true, secretKey: ""}, 201, "", nil, true},
		{"http, which drops the flag", "PUT", with(guideCluster(), object{"session_protocol": "http"}), 201, "", nil, false},
		{"https without TLS settings", "PATCH", object{"session_protocol": "https"}, 500, "check constraint", nil, false},
	} {
		got := s.call(row.method, "/clusters/"+id, row.body)
		if got.status != row.status || !strings.Contains(got.message, row.message) {
			t.Errorf("%s %s: %d %s, want %d %s", row.method, row.name, got.status, got.body, row.status, row.message)
		}
		stored := s.must(200, "GET", "/clusters/"+id, nil).object(t)
		if stored[secretKey] != row.secret || stored[tlsFlag] != row.flag {
			t.Errorf("after %s %s: stored %v, %v", row.method, row.name, stored[secretKey], stored[tlsFlag])
		}
	}
}

func TestClusterPatch(t *testing.T) {
	s := newSite(t)
	id := s.must(
		201, "POST", "/clusters",
		with(guideCluster(), object{accountName: "sessions", "session_tls_secret_name": "x", tlsFlag: nil}),
	).object(t)["id"].(string)
	if !ulid.MatchString(id) {
		t.Errorf("id %q", id)
	}
	got := s.must(201, "PATCH", "/clusters/"+id, object{"session_storage_class": "", "session_port": 8443}).object(t)
	if _, there := got["session_storage_class"]; there || got["session_port"] != 8443.0 || got["name"] != "Bern cluster" ||
		got[accountName] != "sessions" {
		t.Errorf("%v", got)
	}
	refusals{
		{"an unknown key", "PATCH", "/clusters/" + id, object{"x": 1}, 422, "x: Extra"},
		{"a wrong value", "PATCH", "/clusters/" + id, object{"session_port": 70000}, 422, "session_port: Input"},
		{"a name that is taken", "PATCH", "/clusters/" + id, object{"name": "Paris"}, 500, "unique constraint"},
		{"too long a name", "PATCH", "/clusters/" + id, object{"name": strings.Repeat("a", 41)}, 500, "varying(40)"},
		{"PUT of a config_name that is taken", "PUT", "/clusters/" + id, with(guideCluster(), object{
			"config_name": "paris.yaml", "session_tls_secret_name": "x", tlsFlag: nil,
		}), 500, "unique constraint"},
		{
			"PUT without a host", "PUT", "/clusters/" + id, with(guideCluster(), object{"session_host": nil}), 422,
			"session_host: Field required",
		},
	}.play(t, s)
	got = s.must(201, "PUT", "/clusters/"+id, with(guideCluster(), object{
		"session_storage_class": nil, "session_ingress_class_name": nil, "session_tls_secret_name": "y", tlsFlag: nil,
	})).object(t)
	if got["session_ingress_class_name"] != "renku-user-session-ingress-class" || got[accountName] != "sessions" ||
		got["session_tls_secret_name"] != "y" {
		t.Errorf("PUT changed what its body omits: %v", got)
	}
	s.must(204, "DELETE", "/clusters/"+id, nil)
	s.must(204, "DELETE", "/clusters/"+id, nil)
	s.must(404, "GET", "/clusters/"+id, nil)
}
