// Rules for clusters (crc/api.spec.yaml and the models generated from it in crc/apispec.py; crc/core.py
// validate_cluster*, crc/db.py ClusterRepository.update, crc/orm.py ClusterORM). They check what the schema cannot:
// combinations of TLS settings and PostgreSQL's constraints.

package renkuapi

import (
	"maps"
	"regexp"
	"unicode/utf8"
)

const (
	ulidPattern   = `^[0-7][0-9A-HJKMNP-TV-Z]{25}$`
	columnWidth   = 40 // varchar length of name and config_name
	tlsFlag       = "session_ingress_use_default_cluster_tls_cert"
	accountName   = "service_account_name"
	tlsConstraint = "protocol_tls_secrets"
)

var (
	ulid         = regexp.MustCompile(ulidPattern)
	configNames  = regexp.MustCompile(`^[a-zA-Z0-9._-]+[.]yaml$`)
	sessionHosts = regexp.MustCompile(`^([0-9a-zA-Z:_-]+[.])*[0-9a-zA-Z:_-]+$`)
	accountNames = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*[a-z0-9]$`)
)

// clusterSchema is the schema for POST and PUT.
var clusterSchema = schema{
	{name: "name", kind: "string", required: true, low: 5},
	{name: "config_name", kind: "string", required: true, pattern: configNames},
	{name: "session_protocol", kind: "string", required: true, values: []string{"http", "https"}},
	{name: "session_host", kind: "string", required: true, high: 256, pattern: sessionHosts},
	{name: "session_port", kind: "integer", required: true, high: 65536},
	{name: "session_path", kind: "string", required: true},
	{name: "session_ingress_annotations", kind: "object", required: true},
	{name: "session_ingress_class_name", kind: "string", high: 256},
	{name: "session_storage_class", kind: "string", high: 256},
	{name: "session_tls_secret_name", kind: "string", high: 256},
	{name: accountName, kind: "string", low: 1, high: 63, pattern: accountNames},
	{name: tlsFlag, kind: "boolean"},
}

// cluster is a row in the clusters table. Responses omit nil fields, which are NULL in the database.
type cluster struct {
	ID             string         `json:"id"`
	Name           string         `json:"name"`
	ConfigName     string         `json:"config_name"`
	Protocol       string         `json:"session_protocol"`
	Host           string         `json:"session_host"`
	Port           int            `json:"session_port"`
	Path           string         `json:"session_path"`
	Annotations    map[string]any `json:"session_ingress_annotations"`
	IngressClass   *string        `json:"session_ingress_class_name,omitempty"`
	StorageClass   *string        `json:"session_storage_class,omitempty"`
	TLSSecret      *string        `json:"session_tls_secret_name,omitempty"`
	ServiceAccount *string        `json:"service_account_name,omitempty"`
	// nil with the fault old-renku
	DefaultCert *bool `json:"session_ingress_use_default_cluster_tls_cert,omitempty"`
}

func (c *cluster) clone() *cluster {
	other := *c
	other.Annotations = maps.Clone(c.Annotations)
	return &other
}

// clusterPatch is the body of a PATCH. nil leaves a column unchanged.
type clusterPatch struct {
	Name           *string         `json:"name"`
	ConfigName     *string         `json:"config_name"`
	Protocol       *string         `json:"session_protocol"`
	Host           *string         `json:"session_host"`
	Port           *int            `json:"session_port"`
	Path           *string         `json:"session_path"`
	Annotations    *map[string]any `json:"session_ingress_annotations"`
	IngressClass   *string         `json:"session_ingress_class_name"`
	StorageClass   *string         `json:"session_storage_class"`
	TLSSecret      *string         `json:"session_tls_secret_name"`
	ServiceAccount *string         `json:"service_account_name"`
	DefaultCert    *bool           `json:"session_ingress_use_default_cluster_tls_cert"`

	unsetsSecret bool // TLSSecret was empty, not omitted; PATCH only
}

// patch returns a patch with all non-nil fields of c.
func (c *cluster) patch() *clusterPatch {
	return &clusterPatch{
		Name: &c.Name, ConfigName: &c.ConfigName, Protocol: &c.Protocol, Host: &c.Host, Port: &c.Port, Path: &c.Path,
		Annotations: &c.Annotations, IngressClass: c.IngressClass, StorageClass: c.StorageClass, TLSSecret: c.TLSSecret,
		ServiceAccount: c.ServiceAccount, DefaultCert: c.DefaultCert,
	}
}

// tlsRule checks the TLS settings of a PUT or PATCH before the database does. The flag counts as set if it is true in
// the request or in the stored row, even if the database will store another value. Only the database rejects a row
// without any TLS setting.
func (p *clusterPatch) tlsRule(stored *cluster) error {
	protocol, secret := stored.Protocol, stored.TLSSecret
	set(&protocol, p.Protocol)
	if p.TLSSecret != nil && *p.TLSSecret != "" {
		secret = p.TLSSecret
	}
	flag := isTrue(p.DefaultCert) || isTrue(stored.DefaultCert)
	empty := p.unsetsSecret || secret != nil && *secret == ""
	switch {
	case protocol != "https":
		return nil
	case flag && !empty && secret != nil:
		return invalid(
			"Cluster %s would use https with both the TLS secret name and the flag for the default TLS certificate.", stored.ID,
		)
	case !flag && empty:
		return invalid(
			"Cluster %s would use https without both the TLS secret name and the flag for the default TLS certificate.",
			stored.ID,
		)
	}
	return nil
}

// on returns row with the patch applied. An empty StorageClass or TLS Secret removes the stored value.
func (p *clusterPatch) on(row *cluster) *cluster {
	next := row.clone()
	set(&next.Name, p.Name)
	set(&next.ConfigName, p.ConfigName)
	set(&next.Protocol, p.Protocol)
	set(&next.Host, p.Host)
	set(&next.Port, p.Port)
	set(&next.Path, p.Path)
	set(&next.Annotations, p.Annotations)
	setOrClear(&next.StorageClass, p.StorageClass)
	setOrClear(&next.TLSSecret, p.TLSSecret)
	if p.IngressClass != nil {
		next.IngressClass = p.IngressClass
	}
	if p.ServiceAccount != nil {
		next.ServiceAccount = p.ServiceAccount
	}
	if p.DefaultCert != nil && next.DefaultCert != nil {
		next.DefaultCert = p.DefaultCert
	}
	return next
}

func set[T any](column, value *T) {
	if value != nil {
		*column = *value
	}
}

func setOrClear(column **string, value *string) {
	switch {
	case value == nil:
	case *value == "":
		*column = nil
	default:
		*column = value
	}
}

// tlsRule checks the TLS settings in a POST or PUT before the database does. An empty name counts as no Secret.
func tlsRule(protocol string, secret *string, flag bool) error {
	named := secret != nil && *secret != ""
	switch {
	case protocol != "https":
		return nil
	case named && flag:
		return invalid(
			"The session protocol is https and you have set both the TLS secret name and the flag to use the default " +
				"TLS certificate of the cluster. Please set only one of these two options.",
		)
	case !named && !flag:
		return invalid("The session protocol is https, but neither the TLS secret name nor the flag to use the default TLS " +
			"certificate of the cluster are set. Please set only one of these two options.")
	}
	return nil
}

// columns returns the database's error if a string is too long or a CHECK fails. In a CHECK, an empty name counts as a
// Secret.
func (c *cluster) columns() error {
	if utf8.RuneCountInString(c.Name) > columnWidth || utf8.RuneCountInString(c.ConfigName) > columnWidth {
		return tooLong(columnWidth)
	}
	if c.Protocol == "https" && (c.TLSSecret != nil) == isTrue(c.DefaultCert) {
		return database(`new row for relation "clusters" violates check constraint "%s"`, tlsConstraint)
	}
	return nil
}

func isTrue(flag *bool) bool { return flag != nil && *flag }
