// Package certificate creates certificate authorities and issues certificates.
package certificate
