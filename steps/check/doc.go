// Package check contains checks that guides share: a cluster answers, its clock matches, permissions are granted, a
// certificate is valid. It depends on no particular product.
package check
