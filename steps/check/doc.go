// Package check contains checks that guides share. For example, they verify that a cluster answers, that its clock
// matches, that permissions are granted or that a certificate is valid. The package depends on no particular product.
package check
