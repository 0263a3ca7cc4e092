package extension

import (
	"crypto/tls"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	reviews *prometheus.CounterVec
	seconds prometheus.Histogram
	made    *prometheus.CounterVec
	failed  prometheus.Counter
	leads   prometheus.Gauge
	ends    prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	in := promauto.With(r)
	m := &metrics{
		reviews: in.NewCounterVec(
			prometheus.CounterOpts{Name: "carrick_extension_reviews_total", Help: "Reviews of claims, by outcome."},
			[]string{"outcome"},
		),
		seconds: in.NewHistogram(prometheus.HistogramOpts{
			Name: "carrick_extension_review_seconds", Help: "Duration of a review.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 8),
		}),
		made: in.NewCounterVec(
			prometheus.CounterOpts{
				Name: "carrick_extension_made_total", Help: "Objects created for the namespaces of profiles.",
			},
			[]string{"kind"},
		),
		failed: in.NewCounter(prometheus.CounterOpts{
			Name: "carrick_extension_failures_total",
			Help: "Namespaces of profiles that are retried because the API server rejected a request.",
		}),
		leads: in.NewGauge(
			prometheus.GaugeOpts{Name: "carrick_extension_leads", Help: "1 if this instance holds the lease."},
		),
		ends: in.NewGauge(prometheus.GaugeOpts{
			Name: "carrick_extension_certificate_end_seconds", Help: "Unix time at which the serving certificate expires.",
		}),
	}
	for _, o := range []Outcome{Changed, Kept, Unread, Malformed} {
		m.reviews.WithLabelValues(string(o))
	}
	return m
}

func (m *metrics) shows(pair *tls.Certificate) { m.ends.Set(float64(pair.Leaf.NotAfter.Unix())) }
