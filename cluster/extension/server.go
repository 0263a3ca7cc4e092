package extension

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
)

const (
	reviewPath = "/pvc/mutate" // the path of upstream's webhook
	// reviewLimit is the maximum size of a review in bytes. It is larger than the maximum size of an object in an API
	// server.
	reviewLimit = 4 << 20
	// lastAnswers is the time limit for requests that are in flight at shutdown.
	lastAnswers = 10 * time.Second
)

// server answers reviews over TLS, and serves health checks and metrics without TLS.
type server struct {
	Options
	metrics *metrics
	cert    *servedPair
	gather  prometheus.Gatherer
	ending  atomic.Bool
}

func newServer(o Options, m *metrics, gather prometheus.Gatherer) *server {
	return &server{Options: o, metrics: m, gather: gather, cert: &servedPair{folder: o.CertDir, log: o.Log, ends: m.shows}}
}

// run serves until ctx ends. It opens both listeners first, so that it returns an error immediately if an address is in
// use.
func (s *server) run(ctx context.Context) error {
	var all errgroup.Group
	health, err := net.Listen("tcp", s.HealthAddress)
	if err != nil {
		return err
	}
	status := s.http(s.healthHandler())
	all.Go(func() error { return served(status.Serve(health)) })
	s.Log.Info("health served", "address", health.Addr().String())
	if s.Class == "" {
		<-ctx.Done()
		return errors.Join(status.Close(), all.Wait())
	}
	listener, err := net.Listen("tcp", s.BindAddress)
	if err != nil {
		return errors.Join(err, status.Close(), all.Wait())
	}
	hook := s.http(s.reviewHandler())
	// API servers speak HTTP/1.1 to webhooks
	// (kubernetes/kubernetes: staging/src/k8s.io/apiserver/pkg/util/webhook/client.go).
	hook.Protocols = new(http.Protocols)
	hook.Protocols.SetHTTP1(true)
	hook.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.cert.current}
	ended := make(chan error, 1)
	all.Go(func() error {
		err := served(hook.ServeTLS(listener, "", ""))
		ended <- err
		return err
	})
	s.Log.Info("reviews served", "address", listener.Addr().String(), "class", s.Class, "from", s.From)
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = s.drain(hook)
	}
	return errors.Join(err, status.Close(), all.Wait())
}

// drain shuts the webhook down. First it reports that the webhook is not ready and closes each connection after its
// response, so that clients connect to another replica. After ShutdownDelay it shuts the server down.
func (s *server) drain(hook *http.Server) error {
	s.ending.Store(true)
	hook.SetKeepAlivesEnabled(false)
	s.Log.Info("ending", "delay", s.ShutdownDelay)
	time.Sleep(s.ShutdownDelay)
	ctx, cancel := context.WithTimeout(context.Background(), lastAnswers)
	defer cancel()
	return hook.Shutdown(ctx)
}

// served returns err, or nil if the server was shut down.
func served(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func (s *server) http(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
}

func (s *server) reviewHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+reviewPath, s.review)
	return mux
}

func (s *server) review(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, reviewLimit))
	if errors.As(err, new(*http.MaxBytesError)) {
		s.refuse(w, r, err, http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		s.refuse(w, r, err, http.StatusBadRequest)
		return
	}
	answer, reviewed, err := s.Review(body)
	if err != nil {
		s.refuse(w, r, err, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // an error means that the client has disconnected
	s.metrics.reviews.WithLabelValues(string(reviewed.Outcome)).Inc()
	s.metrics.seconds.Observe(time.Since(began).Seconds())
	s.logReview(r.Context(), reviewed)
}

// refuse responds to a request whose body is not a review.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error, status int) {
	http.Error(w, err.Error(), status)
	s.metrics.reviews.WithLabelValues(string(Malformed)).Inc()
	s.Log.Warn("malformed review", "from", r.RemoteAddr, "status", status, "error", err)
}

// verbose is the log level of reviews that change nothing in the cluster: claims that keep their class, and dry runs.
const verbose = slog.LevelInfo - 1

func (s *server) logReview(ctx context.Context, r Reviewed) {
	level, said := slog.LevelInfo, "claim changed"
	switch {
	case r.Outcome == Unread:
		level, said = slog.LevelWarn, "claim cannot be parsed, and is unchanged"
	case r.Outcome == Kept:
		level, said = verbose, "claim unchanged"
	case r.DryRun:
		level = verbose
	}
	s.Log.Log(ctx, level, said,
		"namespace", r.Namespace, "name", r.Name, "class", r.Class, "was", r.Was, "uid", r.UID, "dryRun", r.DryRun)
}

// healthHandler serves the liveness and readiness probes and the metrics.
func (s *server) healthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := s.unready(); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.gather, promhttp.HandlerOpts{}))
	return mux
}

// unready returns why the webhook is not ready, or "" if it is.
func (s *server) unready() string {
	if s.ending.Load() {
		return "shutting down"
	}
	if s.Class == "" {
		return ""
	}
	if _, err := s.cert.current(nil); err != nil {
		return "the certificate cannot be read: " + err.Error()
	}
	return ""
}
