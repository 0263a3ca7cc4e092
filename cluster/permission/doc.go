// Package permission describes permissions on a cluster.
package permission
