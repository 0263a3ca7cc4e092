// Package permission says what can be allowed or denied on a cluster.
package permission
